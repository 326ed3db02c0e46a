package emitter

import "testing"

// TestAdjustedNames has names of the captures names-avro, avro-names and avro-names-unicode, and the rules of
// SchemaNameAdjuster that no capture shows.
func TestAdjustedNames(t *testing.T) {
	for _, c := range []struct {
		mode                NameMode
		name, schema, field string
	}{
		{"", "1 a", "1 a", "1 a"},
		{NamesAsTheyAre, "a-b", "a-b", "a-b"},
		{AvroNames, "names-avro.1db.t.Key", "names_avro.1db.t.Key", "names_avro_1db_t_Key"},
		{AvroNames, "avro-names.inventory.order-items.Envelope", "avro_names.inventory.order_items.Envelope", "avro_names_inventory_order_items_Envelope"},
		{AvroNames, "order-id", "order_id", "order_id"},
		{AvroNames, "1st", "_1st", "_1st"},
		{AvroNames, "$x", "_x", "_x"},
		{AvroNames, "näme", "n_me", "n_me"},
		{AvroNames, "ÜmlautÜ", "_mlaut_", "_mlaut_"},
		{AvroNames, "emoji☃", "emoji_", "emoji_"},
		{AvroNames, "a😀", "a__", "a__"}, // two UTF-16 units
		{AvroNames, ".a", "_a", "_a"},
		{AvroNames, "١a", "_١a", "_١a"}, // Debezium's fault: a digit to Java, and no letter of Avro
		{AvroNames, "a_b", "a_b", "a_b"},
		{AvroNames, "", "", ""},
		{AvroUnicodeNames, "order-id", "order_u002did", "order_u002did"},
		{AvroUnicodeNames, "a_b", "a_u005fb", "a_u005fb"},
		{AvroUnicodeNames, "1st", "_u0031st", "_u0031st"},
		{AvroUnicodeNames, "a1", "a1", "a1"},
		{AvroUnicodeNames, "a.b", "a.b", "a_u002eb"},
		{AvroUnicodeNames, "ä☃ $", "_u00e4_u2603_u0020_u0024", "_u00e4_u2603_u0020_u0024"},
		{AvroUnicodeNames, "к\tя", "_u43a_u009_u44f", "_u43a_u009_u44f"}, // three digits stay three, one gets two zeros
		{AvroUnicodeNames, "😀", "_ud83d_ude00", "_ud83d_ude00"},
	} {
		if got := c.mode.schemaName(c.name); got != c.schema {
			t.Errorf("%s: schema %q: got %q, want %q", c.mode, c.name, got, c.schema)
		}
		if got := c.mode.fieldName(c.name); got != c.field {
			t.Errorf("%s: field %q: got %q, want %q", c.mode, c.name, got, c.field)
		}
	}
	for _, cfg := range []Config{{Prefix: "p", SchemaNames: "AVRO"}, {Prefix: "p", FieldNames: "x"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
