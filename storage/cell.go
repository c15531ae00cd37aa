package storage

import (
	"math"
	"strconv"

	"stoa/protocol"
)

// Places are in the index of the directory as cells of seven sizes, as prices are as buckets: squares
// of 45 degrees, each divided into sixteen of the next size, the smallest of which are 1.2 km high. A
// search near a place is the cells that its circle may touch; distances are compared afterwards.
const cellLevels = 7

// maxCells is how many cells one search names.
const maxCells = 36

// cellSize is the side of a cell of a level, in degrees.
func cellSize(level int) float64 { return 45 / float64(int(1)<<(2*level)) }

// cellFacet is a cell of a level by its row from the south pole and its column, which may be one of the
// next turn around the globe.
func cellFacet(level, row, column int) string {
	columns := 8 << (2 * level)
	row = min(row, columns/2-1) // the north pole
	return facet(facetCell, strconv.Itoa(level)+"."+strconv.Itoa(row)+"."+strconv.Itoa(column%columns))
}

func cellRow(latitude, size float64) int     { return int(math.Floor((latitude + 90) / size)) }
func cellColumn(longitude, size float64) int { return int(math.Floor((longitude + 180) / size)) }

// cellsOf are the cells that a place is in, one of each size.
func cellsOf(g protocol.Geo) (all []string) {
	for level := range cellLevels {
		size := cellSize(level)
		all = append(all, cellFacet(level, cellRow(g.Latitude, size), cellColumn(g.Longitude, size)))
	}
	return all
}

// cellsAround are the cells of a circle, of the smallest size that needs few of them.
func cellsAround(near protocol.Geo, radius float64) (all []string) {
	b := near.Around(radius)
	for level := cellLevels - 1; level >= 0; level-- {
		size := cellSize(level)
		south, north := cellRow(b.South, size), cellRow(b.North, size)
		west, east := cellColumn(b.West, size), cellColumn(b.West+b.Width, size)
		if east -= max(0, east-west+1-8<<(2*level)); (north-south+1)*(east-west+1) > maxCells && level > 0 {
			continue
		}
		for row := south; row <= north; row++ {
			for column := west; column <= east; column++ {
				all = append(all, cellFacet(level, row, column))
			}
		}
		break
	}
	return all
}
