// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// An ERC-20 token for tests: as much as anybody asks for, six decimals.
contract TestToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public constant name = "Test Rupee";
    string public constant symbol = "TINR";
    uint8 public constant decimals = 6;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    function mint(uint256 value) external {
        totalSupply += value;
        balanceOf[msg.sender] += value;
        emit Transfer(address(0), msg.sender, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(balanceOf[msg.sender] >= value, "balance too low");
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
