// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// ERC-1271 wallet for tests: one replaceable signer. Signer zero makes every
/// check burn all the gas it was given.
contract TestWallet {
    address public signer;

    constructor(address first) { signer = first; }

    function setSigner(address next) external { signer = next; }

    function isValidSignature(bytes32 digest, bytes calldata sig) external view returns (bytes4) {
        while (signer == address(0)) {}
        if (sig.length != 65) return 0xffffffff;
        address got = ecrecover(digest, uint8(sig[64]), bytes32(sig[0:32]), bytes32(sig[32:64]));
        return got == signer ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
