package erc8004

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// An ID names one agent: the chain, the identity registry on it and the token in that registry.
// Agent ids count from 0, so only nil means none.
type ID struct {
	ChainID  uint64
	Registry common.Address
	AgentID  *big.Int // 0 to 2^256-1; must not be changed
}

var idPattern = regexp.MustCompile(`^eip155:([1-9][0-9]{0,18}):(0x[0-9a-fA-F]{40}):(0|[1-9][0-9]{0,77})$`)

// ParseID parses eip155:<chainId>:<registry>:<agentId>. Numbers have no leading zeros; an address
// in mixed case must have its EIP-55 checksum. Any other namespace or form is refused with
// [ErrInvalidID].
func ParseID(s string) (ID, error) {
	m := idPattern.FindStringSubmatch(s)
	if m == nil {
		return ID{}, fmt.Errorf("%w: want eip155:<chainId>:<registry>:<agentId>", ErrInvalidID)
	}
	chain, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("%w: chain id over 64 bits", ErrInvalidID)
	}
	addr := common.HexToAddress(m[2])
	if digits := m[2][2:]; digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && addr.Hex() != m[2] {
		return ID{}, fmt.Errorf("%w: the registry's checksum is wrong (EIP-55)", ErrInvalidID)
	}
	agent, _ := new(big.Int).SetString(m[3], 10)
	if agent.BitLen() > 256 {
		return ID{}, fmt.Errorf("%w: agent id over 256 bits", ErrInvalidID)
	}
	return ID{ChainID: chain, Registry: addr, AgentID: agent}, nil
}

// String returns the canonical form, all lower case: the one to store and compare.
func (id ID) String() string { return id.text("0x" + hex.EncodeToString(id.Registry[:])) }

// Display returns the form to show, with the EIP-55 checksum.
func (id ID) Display() string { return id.text(id.Registry.Hex()) }

func (id ID) text(registry string) string {
	return "eip155:" + strconv.FormatUint(id.ChainID, 10) + ":" + registry + ":" + id.AgentID.String()
}
