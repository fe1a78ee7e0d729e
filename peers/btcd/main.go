// Writes btcd's block tests (package blockchain/fullblocktests) as one JSON object per line, for the
// table of vectors to replay: cargo test -p assay-engine --test vectors -- fullblocktests
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/btcsuite/btcd/blockchain/fullblocktests"
	// Only for the vectors it carries: the requirement in go.mod keeps them in the module cache.
	_ "github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
)

// step is one line: a block with what btcd says of it, or a statement about the state.
type step struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Height int32  `json:"height"`
	// Where an accepted block goes.
	MainChain bool `json:"main_chain,omitempty"`
	Orphan    bool `json:"orphan,omitempty"`
	// btcd's name for the fault of a rejected block.
	Code  string `json:"code,omitempty"`
	Block string `json:"block,omitempty"`
	Hash  string `json:"hash,omitempty"`
	// An output, as txid:index, and whether it is unspent.
	Output  string `json:"output,omitempty"`
	Unspent bool   `json:"unspent,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "btcd:", err)
		os.Exit(1)
	}
}

func run() error {
	groups, err := fullblocktests.Generate(false)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for _, group := range groups {
		for _, instance := range group {
			line, err := describe(instance)
			if err != nil {
				return err
			}
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func describe(instance fullblocktests.TestInstance) (step, error) {
	switch test := instance.(type) {
	case fullblocktests.AcceptedBlock:
		block, err := raw(test.Block)
		return step{Kind: "accepted", Name: test.Name, Height: test.Height,
			MainChain: test.IsMainChain, Orphan: test.IsOrphan, Block: block}, err
	case fullblocktests.RejectedBlock:
		block, err := raw(test.Block)
		return step{Kind: "rejected", Name: test.Name, Height: test.Height,
			Code: test.RejectCode.String(), Block: block}, err
	case fullblocktests.OrphanOrRejectedBlock:
		block, err := raw(test.Block)
		return step{Kind: "orphan_or_rejected", Name: test.Name, Height: test.Height, Block: block}, err
	case fullblocktests.RejectedNonCanonicalBlock:
		return step{Kind: "undecodable", Name: test.Name, Height: test.Height,
			Block: hex.EncodeToString(test.RawBlock)}, nil
	case fullblocktests.ExpectedTip:
		return step{Kind: "tip", Name: test.Name, Height: test.Height,
			Hash: test.Block.BlockHash().String()}, nil
	case fullblocktests.BlockDisconnectExpectUTXO:
		return step{Kind: "output", Name: test.Name, Unspent: test.Expected,
			Hash: test.BlockHash.String(), Output: test.OutPoint.String()}, nil
	}
	return step{}, fmt.Errorf("an instance of unknown type %T", instance)
}

func raw(block *wire.MsgBlock) (string, error) {
	var buffer bytes.Buffer
	if err := block.Serialize(&buffer); err != nil {
		return "", err
	}
	return hex.EncodeToString(buffer.Bytes()), nil
}
