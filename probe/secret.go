package probe

import (
	"fmt"
	"os"
	"strings"
)

// A Secret is a password. It prints as stars and has no JSON form, so that it
// reaches no file, log or error by accident. The zero value is no password.
type Secret struct{ text string }

// NewSecret returns text as a Secret.
func NewSecret(text string) Secret { return Secret{text} }

// Format writes stars for any verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s.text != "" {
		fmt.Fprint(f, "***")
	}
}

// MarshalJSON writes null.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Reveal returns the password itself.
func (s Secret) Reveal() string { return s.text }

// PasswordFromEnvironment returns what redis-cli's variable REDISCLI_AUTH
// holds, and removes the variable, so that no child process inherits it.
func PasswordFromEnvironment() Secret {
	const name = "REDISCLI_AUTH"
	s := NewSecret(os.Getenv(name))
	os.Unsetenv(name)
	return s
}

// SecretFromFile returns the first line of a file. What the secret is, "the
// password" say, is for the error.
func SecretFromFile(what, path string) (Secret, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, fmt.Errorf("reading %s: %w", what, err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return Secret{}, fmt.Errorf("reading %s: the first line of %s is empty", what, path)
	}
	return NewSecret(line), nil
}
