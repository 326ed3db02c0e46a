package config

import "fmt"

const hidden = "********"

// Secret is a value that must not be printed: every way of formatting or encoding it gives asterisks. Only Reveal
// gives the text.
type Secret string

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String is asterisks, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes what String returns for every verb, %#v and %x too.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText is what String returns; JSON uses it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
