package fleet

// split divides clients among agents as evenly as can be, none of which can
// have more than its limit, the first ones having one more when it does not
// divide: 10 over 3 are 4, 3 and 3. An agent has at least least clients or
// none; the last ones have none when there are too few. It returns nil when
// the agents cannot have them all.
func split(clients, least int, limits []int) []int {
	n := min(len(limits), clients/max(1, least))
	for ; n > 0; n-- {
		if shares := fill(clients, limits, n); shares != nil && smallest(shares[:n]) >= min(least, clients) {
			return shares
		}
	}
	return nil
}

// fill divides clients among the first n agents; nil when they do not fit.
func fill(clients int, limits []int, n int) []int {
	shares := make([]int, len(limits))
	left := clients
	for left > 0 {
		open := 0
		for i := range n {
			if shares[i] < limits[i] {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		each, more := left/open, left%open
		for i := range n {
			if shares[i] == limits[i] {
				continue
			}
			give := each
			if more > 0 {
				give, more = give+1, more-1
			}
			give = min(give, limits[i]-shares[i])
			shares[i] += give
			left -= give
		}
	}
	return shares
}

func smallest(shares []int) int {
	least := shares[0]
	for _, s := range shares {
		least = min(least, s)
	}
	return least
}

// quota returns the part of requests that falls to an agent with clients after
// those with before of all: proportional, so that they end together, and
// exact in the sum.
func quota(requests int64, before, clients, all int) int64 {
	upTo := func(n int) int64 { return requests/int64(all)*int64(n) + requests%int64(all)*int64(n)/int64(all) }
	return upTo(before+clients) - upTo(before)
}
