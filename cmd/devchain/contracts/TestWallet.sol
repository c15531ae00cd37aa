// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// ERC-1271 wallet for tests: one replaceable signer. Signer zero makes every
/// check burn all the gas it was given. It calls what it is told to, and takes
/// tokens with the answer that is set; answer zero reverts with "no thanks".
contract TestWallet {
    address public signer;
    bytes4 public answer = 0x150b7a02;
    bytes public received; // operator, from, tokenId, data of the last token

    constructor(address first) { signer = first; }

    function setSigner(address next) external { signer = next; }

    function setAnswer(bytes4 next) external { answer = next; }

    function execute(address to, bytes calldata data) external {
        (bool ok, bytes memory out) = to.call(data);
        if (!ok) assembly { revert(add(out, 32), mload(out)) }
    }

    function onERC721Received(address operator, address from, uint256 tokenId, bytes calldata data) external returns (bytes4) {
        require(answer != 0, "no thanks");
        received = abi.encode(operator, from, tokenId, data);
        return answer;
    }

    function isValidSignature(bytes32 digest, bytes calldata sig) external view returns (bytes4) {
        while (signer == address(0)) {}
        if (sig.length != 65) return 0xffffffff;
        address got = ecrecover(digest, uint8(sig[64]), bytes32(sig[0:32]), bytes32(sig[32:64]));
        return got == signer ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
