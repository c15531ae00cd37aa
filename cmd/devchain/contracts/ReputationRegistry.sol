// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

interface Identity {
    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool);
}

/// ERC-8004 reputation registry for development chains. Values are signed fixed
/// point; endpoint, URI and hash live only in the event.
contract ReputationRegistry {
    struct Feedback { int128 value; uint8 decimals; bool revoked; string tag1; string tag2; }

    struct Sum { uint64 count; int256 total; uint64[19] seen; } // total in 18 decimals

    event NewFeedback(uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, int128 value, uint8 valueDecimals,
        string indexed indexedTag1, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash);
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);
    event ResponseAppended(uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, address indexed responder, string responseURI, bytes32 responseHash);

    address immutable identity;
    mapping(uint256 => mapping(address => Feedback[])) given; // index 1 is given[0]
    mapping(uint256 => address[]) clients;
    // agent, client, index, responder; the zero address has the sum of all
    mapping(uint256 => mapping(address => mapping(uint64 => mapping(address => uint64)))) responses;
    int128 constant MAX_VALUE = 1e38;

    constructor(address identityRegistry) { identity = identityRegistry; }

    function getVersion() external pure returns (string memory) { return "2.0.0"; }

    function getIdentityRegistry() external view returns (address) { return identity; }

    function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string calldata tag1, string calldata tag2,
        string calldata endpoint, string calldata feedbackURI, bytes32 feedbackHash) external {
        require(valueDecimals <= 18, "too many decimals");
        require(value >= -MAX_VALUE && value <= MAX_VALUE, "value too large");
        require(!Identity(identity).isAuthorizedOrOwner(msg.sender, agentId), "Self-feedback not allowed"); // reverts for a missing agent
        Feedback[] storage list = given[agentId][msg.sender];
        if (list.length == 0) clients[agentId].push(msg.sender);
        list.push(Feedback(value, valueDecimals, false, tag1, tag2));
        emit NewFeedback(agentId, msg.sender, uint64(list.length), value, valueDecimals, tag1, tag1, tag2, endpoint, feedbackURI, feedbackHash);
    }

    function revokeFeedback(uint256 agentId, uint64 index) external {
        Feedback storage f = find(agentId, msg.sender, index);
        require(!f.revoked, "Already revoked");
        f.revoked = true;
        emit FeedbackRevoked(agentId, msg.sender, index);
    }

    function appendResponse(uint256 agentId, address client, uint64 index, string calldata responseURI, bytes32 responseHash) external {
        require(index > 0, "index must be > 0");
        require(bytes(responseURI).length > 0, "Empty URI");
        find(agentId, client, index);
        responses[agentId][client][index][msg.sender]++;
        responses[agentId][client][index][address(0)]++;
        emit ResponseAppended(agentId, client, index, msg.sender, responseURI, responseHash);
    }

    function readFeedback(uint256 agentId, address client, uint64 index) external view returns (int128, uint8, string memory, string memory, bool) {
        Feedback storage f = find(agentId, client, index);
        return (f.value, f.decimals, f.tag1, f.tag2, f.revoked);
    }

    /// No clients means all of the agent's.
    function readAllFeedback(uint256 agentId, address[] calldata from, string calldata tag1, string calldata tag2, bool includeRevoked)
        external view returns (address[] memory who, uint64[] memory indexes, int128[] memory values, uint8[] memory decimals,
        string[] memory tag1s, string[] memory tag2s, bool[] memory revoked) {
        address[] memory chosen = from;
        if (from.length == 0) chosen = clients[agentId];
        uint256 n;
        for (uint256 i; i < chosen.length; i++) n += given[agentId][chosen[i]].length;
        who = new address[](n);
        indexes = new uint64[](n);
        values = new int128[](n);
        decimals = new uint8[](n);
        tag1s = new string[](n);
        tag2s = new string[](n);
        revoked = new bool[](n);
        n = 0;
        for (uint256 i; i < chosen.length; i++) {
            Feedback[] storage list = given[agentId][chosen[i]];
            for (uint256 j; j < list.length; j++) {
                Feedback storage f = list[j];
                if (f.revoked && !includeRevoked || !matches(tag1, f.tag1) || !matches(tag2, f.tag2)) continue;
                (who[n], indexes[n], values[n], decimals[n]) = (chosen[i], uint64(j + 1), f.value, f.decimals);
                (tag1s[n], tag2s[n], revoked[n]) = (f.tag1, f.tag2, f.revoked);
                n++;
            }
        }
        assembly ("memory-safe") { // to the length that was used
            mstore(who, n) mstore(indexes, n) mstore(values, n) mstore(decimals, n) mstore(tag1s, n) mstore(tag2s, n) mstore(revoked, n)
        }
    }

    /// No responders means all. Client zero means all clients, index zero all feedback of the client.
    function getResponseCount(uint256 agentId, address client, uint64 index, address[] calldata responders) external view returns (uint64 count) {
        if (client != address(0)) return countOf(agentId, client, index, responders);
        address[] storage all = clients[agentId];
        for (uint256 i; i < all.length; i++) count += countOf(agentId, all[i], 0, responders);
    }

    function countOf(uint256 agentId, address client, uint64 index, address[] calldata responders) private view returns (uint64 count) {
        uint64 last = index > 0 ? index : uint64(given[agentId][client].length);
        for (uint64 j = index > 0 ? index : 1; j <= last; j++) {
            mapping(address => uint64) storage by = responses[agentId][client][j];
            if (responders.length == 0) count += by[address(0)];
            for (uint256 k; k < responders.length; k++) count += responders[k] == address(0) ? 0 : by[responders[k]];
        }
    }

    function getClients(uint256 agentId) external view returns (address[] memory) { return clients[agentId]; }

    function getLastIndex(uint256 agentId, address client) external view returns (uint64) { return uint64(given[agentId][client].length); }

    /// Average in the most frequent number of decimals, truncated towards zero.
    function getSummary(uint256 agentId, address[] calldata from, string calldata tag1, string calldata tag2)
        external view returns (uint64 count, int128 value, uint8 decimals) {
        require(from.length > 0, "clientAddresses required");
        Sum memory all;
        for (uint256 i; i < from.length; i++) add(all, given[agentId][from[i]], tag1, tag2);
        count = all.count;
        if (count == 0) return (0, 0, 0);
        for (uint8 d = 1; d < 19; d++) if (all.seen[d] > all.seen[decimals]) decimals = d;
        value = int128(all.total / int256(uint256(count)) / int256(10 ** uint256(18 - decimals)));
    }

    function add(Sum memory all, Feedback[] storage list, string calldata tag1, string calldata tag2) private view {
        for (uint256 j; j < list.length; j++) {
            Feedback storage f = list[j];
            if (f.revoked || !matches(tag1, f.tag1) || !matches(tag2, f.tag2)) continue;
            all.total += int256(f.value) * int256(10 ** uint256(18 - f.decimals));
            all.seen[f.decimals]++;
            all.count++;
        }
    }

    function find(uint256 agentId, address client, uint64 index) private view returns (Feedback storage) {
        require(index > 0, "index must be > 0");
        require(index <= given[agentId][client].length, "index out of bounds");
        return given[agentId][client][index - 1];
    }

    function matches(string calldata want, string storage have) private view returns (bool) {
        return bytes(want).length == 0 || keccak256(bytes(want)) == keccak256(bytes(have));
    }
}
