package storage

import "context"

// A CredentialName is what an account calls something that acts for it and has no name of its own.
type CredentialName struct {
	Account, Kind, ID, Name string
}

var credentialNameTable = tableOf[CredentialName]("credential_name")

// CredentialNames reads and writes the names that owners gave.
type CredentialNames struct{ tx *Tx }

func (tx *Tx) CredentialNames() CredentialNames { return CredentialNames{tx} }

// Put names a credential.
func (cs CredentialNames) Put(ctx context.Context, n CredentialName) error {
	return credentialNameTable.put(ctx, cs.tx, &n, "account, kind, id", "name")
}

// Of returns the names of an account by kind and id.
func (cs CredentialNames) Of(ctx context.Context, account string) (map[[2]string]string, error) {
	found, err := list[CredentialName](ctx, cs.tx, credentialNames, account)
	names := make(map[[2]string]string, len(found))
	for _, n := range found {
		names[[2]string{n.Kind, n.ID}] = n.Name
	}
	return names, err
}

var credentialNames = credentialNameTable.from + `WHERE account = ? LIMIT 1000`

// Delete deletes a name, if there is one.
func (cs CredentialNames) Delete(ctx context.Context, account, kind, id string) error {
	return cs.tx.exec(ctx, `DELETE FROM credential_name WHERE account = ? AND kind = ? AND id = ?`, account, kind, id)
}
