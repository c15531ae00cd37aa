// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

interface Receiver {
    function onERC721Received(address operator, address from, uint256 tokenId, bytes calldata data) external returns (bytes4);
}

/// ERC-8004 identity registry for development chains: ERC-721 with a URI and
/// metadata for each agent. Same functions, events, their order, and reverts as
/// the reference registry, version 2.0.0, but for the proxy and its owner; no
/// enumeration, no burn. emitUpgraded is for tests.
contract IdentityRegistry {
    struct MetadataEntry { string metadataKey; bytes metadataValue; }

    error ERC721NonexistentToken(uint256 tokenId);
    error ERC721InsufficientApproval(address operator, uint256 tokenId);
    error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner);
    error ERC721InvalidReceiver(address receiver);
    error ERC721InvalidApprover(address approver);
    error ERC721InvalidOperator(address operator);
    error ERC721InvalidOwner(address owner);

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    event MetadataUpdate(uint256 _tokenId);
    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event MetadataSet(uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event Upgraded(address indexed implementation); // ERC-1967

    string public constant name = "AgentIdentity";
    string public constant symbol = "AGENT";
    string constant WALLET = "agentWallet";
    bytes32 constant DOMAIN = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 constant WALLET_SET = keccak256("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)");

    uint256 nextId; // ids count from 0
    mapping(uint256 => address) owners;
    mapping(uint256 => address) approved;
    mapping(uint256 => string) uris;
    mapping(uint256 => mapping(string => bytes)) metadata;
    mapping(address => uint256) balances;
    mapping(address => mapping(address => bool)) public isApprovedForAll;

    function getVersion() external pure returns (string memory) { return "2.0.0"; }

    function supportsInterface(bytes4 i) external pure returns (bool) {
        return i == 0x01ffc9a7 || i == 0x80ac58cd || i == 0x5b5e139f || i == 0x49064906; // 165, 721, 721 metadata, 4906
    }

    function eip712Domain() external view returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory) {
        return (0x0f, "ERC8004IdentityRegistry", "1", block.chainid, address(this), 0, new uint256[](0));
    }

    function register() external returns (uint256 id) {
        id = mint();
        registered(id, "");
    }

    function register(string memory agentURI) external returns (uint256 id) { id = mintWith(agentURI); }

    function register(string memory agentURI, MetadataEntry[] memory entries) external returns (uint256 id) {
        id = mintWith(agentURI);
        for (uint256 i; i < entries.length; i++) {
            notReserved(entries[i].metadataKey);
            put(id, entries[i].metadataKey, entries[i].metadataValue);
        }
    }

    function balanceOf(address owner) external view returns (uint256) {
        if (owner == address(0)) revert ERC721InvalidOwner(owner);
        return balances[owner];
    }

    function ownerOf(uint256 id) public view returns (address owner) {
        owner = owners[id];
        if (owner == address(0)) revert ERC721NonexistentToken(id);
    }

    function tokenURI(uint256 id) external view returns (string memory) { ownerOf(id); return uris[id]; }

    function getMetadata(uint256 id, string memory key) external view returns (bytes memory) { return metadata[id][key]; }

    function getAgentWallet(uint256 id) external view returns (address) { return address(bytes20(metadata[id][WALLET])); }

    function getApproved(uint256 id) external view returns (address) { ownerOf(id); return approved[id]; }

    function isAuthorizedOrOwner(address spender, uint256 id) public view returns (bool) {
        address owner = ownerOf(id);
        return spender != address(0) && (spender == owner || isApprovedForAll[owner][spender] || approved[id] == spender);
    }

    function setMetadata(uint256 id, string memory key, bytes memory value) external {
        authorized(id);
        notReserved(key);
        put(id, key, value);
    }

    function setAgentURI(uint256 id, string memory newURI) external {
        authorized(id);
        putURI(id, newURI);
        emit URIUpdated(id, newURI, msg.sender);
    }

    /// The new wallet signs; the owner or an operator submits.
    function setAgentWallet(uint256 id, address newWallet, uint256 deadline, bytes calldata signature) external {
        authorized(id);
        require(newWallet != address(0), "bad wallet");
        require(block.timestamp <= deadline, "expired");
        require(deadline <= block.timestamp + 5 minutes, "deadline too far");
        bytes32 domain = keccak256(abi.encode(DOMAIN, keccak256("ERC8004IdentityRegistry"), keccak256("1"), block.chainid, address(this)));
        bytes32 set = keccak256(abi.encode(WALLET_SET, id, newWallet, owners[id], deadline));
        require(signedBy(newWallet, keccak256(abi.encodePacked(hex"1901", domain, set)), signature), "invalid wallet sig");
        put(id, WALLET, abi.encodePacked(newWallet));
    }

    function unsetAgentWallet(uint256 id) external { authorized(id); put(id, WALLET, ""); }

    function approve(address to, uint256 id) external {
        address owner = ownerOf(id);
        if (msg.sender != owner && !isApprovedForAll[owner][msg.sender]) revert ERC721InvalidApprover(msg.sender);
        approved[id] = to;
        emit Approval(owner, to, id);
    }

    function setApprovalForAll(address operator, bool on) external {
        if (operator == address(0)) revert ERC721InvalidOperator(operator);
        isApprovedForAll[msg.sender][operator] = on;
        emit ApprovalForAll(msg.sender, operator, on);
    }

    function transferFrom(address from, address to, uint256 id) public {
        if (to == address(0)) revert ERC721InvalidReceiver(to);
        address owner = ownerOf(id);
        if (!isAuthorizedOrOwner(msg.sender, id)) revert ERC721InsufficientApproval(msg.sender, id);
        if (from != owner) revert ERC721IncorrectOwner(from, id, owner);
        put(id, WALLET, ""); // also when from == to; agentKeys and the URI survive
        delete approved[id];
        balances[from]--;
        balances[to]++;
        owners[id] = to;
        emit Transfer(from, to, id);
    }

    function safeTransferFrom(address from, address to, uint256 id) external { safeTransferFrom(from, to, id, ""); }

    function safeTransferFrom(address from, address to, uint256 id, bytes memory data) public {
        transferFrom(from, to, id);
        offer(from, to, id, data);
    }

    function emitUpgraded(address implementation) external { emit Upgraded(implementation); }

    function mint() private returns (uint256 id) {
        id = nextId++;
        owners[id] = msg.sender;
        balances[msg.sender]++;
        metadata[id][WALLET] = abi.encodePacked(msg.sender);
        emit Transfer(address(0), msg.sender, id);
        offer(address(0), msg.sender, id, "");
    }

    function mintWith(string memory agentURI) private returns (uint256 id) {
        id = mint();
        putURI(id, agentURI);
        registered(id, agentURI);
    }

    function registered(uint256 id, string memory agentURI) private {
        emit Registered(id, agentURI, msg.sender);
        emit MetadataSet(id, WALLET, WALLET, abi.encodePacked(msg.sender));
    }

    /// A contract has to say that it takes the token (ERC-721).
    function offer(address from, address to, uint256 id, bytes memory data) private {
        if (to.code.length == 0) return;
        try Receiver(to).onERC721Received(msg.sender, from, id, data) returns (bytes4 answer) {
            if (answer != Receiver.onERC721Received.selector) revert ERC721InvalidReceiver(to);
        } catch (bytes memory reason) {
            if (reason.length == 0) revert ERC721InvalidReceiver(to);
            assembly { revert(add(reason, 32), mload(reason)) }
        }
    }

    function putURI(uint256 id, string memory uri) private {
        uris[id] = uri;
        emit MetadataUpdate(id); // ERC-4906
    }

    function put(uint256 id, string memory key, bytes memory value) private {
        metadata[id][key] = value;
        emit MetadataSet(id, key, key, value);
    }

    function authorized(uint256 id) private view { require(isAuthorizedOrOwner(msg.sender, id), "Not authorized"); }

    function notReserved(string memory key) private pure { require(keccak256(bytes(key)) != keccak256(bytes(WALLET)), "reserved key"); }

    function signedBy(address who, bytes32 digest, bytes calldata sig) private view returns (bool) {
        if (sig.length == 65) {
            bytes32 s = bytes32(sig[32:64]);
            if (uint256(s) <= 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
                && ecrecover(digest, uint8(sig[64]), bytes32(sig[0:32]), s) == who) return true;
        }
        (bool ok, bytes memory out) = who.staticcall(abi.encodeWithSelector(0x1626ba7e, digest, sig));
        return ok && out.length >= 32 && abi.decode(out, (bytes4)) == bytes4(0x1626ba7e);
    }
}
