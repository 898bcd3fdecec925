// Dominators of a graph (Cooper, Harvey and Kennedy): for each node the last one that every way from the root passes.

/** The immediate dominator of each node that the root leads to; the root has none. */
export function dominatorsOf(root: string, next: (id: string) => readonly string[]): ReadonlyMap<string, string> {
  // Nodes in reverse postorder, with a stack of its own: programs are deep.
  const postorder: string[] = []
  const seen = new Set([root])
  const stack = [{ id: root, rest: [...next(root)] }]
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const id = top.rest.shift()
    if (id === undefined) {
      postorder.push(top.id)
      stack.pop()
    } else if (!seen.has(id)) {
      seen.add(id)
      stack.push({ id, rest: [...next(id)] })
    }
  }
  const rank = new Map(postorder.map((id, i) => [id, i]))
  const before = new Map<string, string[]>()
  for (const id of postorder) for (const to of next(id)) before.set(to, [...(before.get(to) ?? []), id])
  const dominators = new Map<string, string>([[root, root]])
  const meet = (a: string, b: string): string => {
    let [left, right] = [a, b]
    while (left !== right) {
      while ((rank.get(left) ?? 0) < (rank.get(right) ?? 0)) left = dominators.get(left) ?? root
      while ((rank.get(right) ?? 0) < (rank.get(left) ?? 0)) right = dominators.get(right) ?? root
    }
    return left
  }
  for (let hasChanged = true; hasChanged;) {
    hasChanged = false
    for (const id of postorder.toReversed()) {
      if (id === root) continue
      const known = (before.get(id) ?? []).filter((one) => dominators.has(one))
      const [first] = known
      if (first === undefined) continue
      const found = known.reduce(meet, first)
      if (dominators.get(id) !== found) {
        dominators.set(id, found)
        hasChanged = true
      }
    }
  }
  dominators.delete(root)
  return dominators
}
