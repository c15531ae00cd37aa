package credential

import (
	"context"

	"stoa/identity"
	"stoa/identity/eip4361"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/protocol"
)

// signing is an account as a key whose signatures are good where its own key made them, or its contract says so (ERC-1271). It is of one
// request.
func signing(a httpsig.Account, good func(digest [32]byte, sig []byte) (bool, error)) httpsig.Key {
	return httpsig.AccountKey{Account: a, Check: func(base, sig []byte) error {
		if len(sig) == 0 {
			return httpsig.CodeSignatureMalformed
		}
		good, err := good(eip4361.Digest(string(base)), sig)
		if err == nil && !good {
			err = httpsig.CodeSignatureInvalid
		}
		return err
	}}
}

// AccountKey implements identity.Chain.
func (c *Chain) AccountKey(
	ctx context.Context, network, claimed string, account httpsig.Account,
) (k identity.ChainKey, level protocol.ProofLevel, err error) {
	if !c.Dev {
		ctx = erc8004.WithSource(ctx, network)
	}
	return c.accountKey(ctx, claimed, account)
}

func (c *Chain) accountKey(ctx context.Context, claimed string, account httpsig.Account) (k identity.ChainKey, level protocol.ProofLevel, err error) {
	id, err := erc8004.ParseID(claimed)
	if err != nil {
		return k, "", protocol.Errorf(protocol.IdentityUnverified, "Agent-Identity must be eip155:<chainId>:<registry>:<agentId>: %w", err)
	}
	if id.ChainID != account.Chain {
		return k, "", protocol.Errorf(protocol.IdentityUnverified, "the account is on chain %d, and the identity on chain %d", account.Chain, id.ChainID)
	}
	control, err := c.Reader.ControlBy(ctx, id, account.Address)
	if err != nil {
		return k, "", accountError(err)
	}
	if level = protocol.ByWallet; control.Owner == account.Address {
		level = protocol.ByOwner
	}
	return identity.ChainKey{
		Identity: id.String(), Owner: control.Owner, Wallet: control.Wallet, Block: control.Block, BlockHash: control.BlockHash.Hex(),
		Key: signing(account, func(digest [32]byte, sig []byte) (bool, error) {
			good, err := c.Reader.SignedBy(ctx, id, account.Address, digest, sig)
			if err == nil && good {
				err = c.remember(ctx, id.String(), account.Address)
			}
			return good, chainError(err)
		}),
	}, level, nil
}

// Account implements identity.Chain.
func (c *Chain) Account(ctx context.Context, network string, account httpsig.Account) (httpsig.Key, error) {
	if len(c.Reader.Registries()[account.Chain]) == 0 {
		return nil, protocol.Errorf(protocol.KeyUnknown, "this node does not read the chain %d", account.Chain)
	}
	return signing(account, func(digest [32]byte, sig []byte) (bool, error) {
		return c.SignedOn(ctx, network, account.Chain, account.Address, digest, sig)
	}), nil
}

// accountError is chainError for an account.
func accountError(err error) error {
	if e := protocol.AsError(chainError(err)); e.Code == protocol.KeyUnknown {
		return protocol.Errorf(protocol.KeyUnknown, "the account neither owns the identity nor is its agent wallet")
	}
	return chainError(err)
}
