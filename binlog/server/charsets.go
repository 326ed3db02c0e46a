package server

import "context"

// Charsets are the default character sets and collations of a server and of its databases.
type Charsets struct {
	Server, ServerCollation string
	Databases               map[string]string // by the database's name
	Collations              map[string]string
}

// Charsets reads the default character sets.
func (c *Conn) Charsets(ctx context.Context) (Charsets, error) {
	cs := Charsets{Databases: map[string]string{}, Collations: map[string]string{}}
	res, err := c.query(ctx, "SELECT @@GLOBAL.character_set_server AS charset, @@GLOBAL.collation_server AS collation")
	if err != nil {
		return cs, err
	}
	if res.rows() > 0 {
		cs.Server, cs.ServerCollation = res.text(0, "charset"), res.text(0, "collation")
	}
	res, err = c.query(ctx, "SELECT SCHEMA_NAME AS name, DEFAULT_CHARACTER_SET_NAME AS charset, DEFAULT_COLLATION_NAME AS collation FROM information_schema.SCHEMATA")
	if err != nil {
		return cs, err
	}
	for i := range res.rows() {
		name := res.text(i, "name")
		cs.Databases[name], cs.Collations[name] = res.text(i, "charset"), res.text(i, "collation")
	}
	return cs, nil
}
