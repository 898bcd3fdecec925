// The difference of two texts, line by line: the shortest list of lines to take out and put in (Myers).

/** A line of a difference: where it is in the first and in the second text; -1 if it is only in the other. */
export type DiffLine = readonly [before: number, after: number]

/** More different lines than this are shown as one text in place of the other. */
const MOST_EDITS = 1_000

/** The lines of both texts in order; what was taken out stands before what was put in. */
export function lineDiff<T>(before: readonly T[], after: readonly T[]): readonly DiffLine[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let [endBefore, endAfter] = [before.length, after.length]
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) {
    endBefore--
    endAfter--
  }
  const [old, now] = [before.slice(start, endBefore), after.slice(start, endAfter)]
  const middle = shortest(old, now) ?? [...old.map((_, i): DiffLine => [i, -1]), ...now.map((_, i): DiffLine => [-1, i])]
  return [
    ...Array.from({ length: start }, (_, i): DiffLine => [i, i]),
    ...middle.map(([a, b]): DiffLine => [a < 0 ? -1 : a + start, b < 0 ? -1 : b + start]),
    ...Array.from({ length: before.length - endBefore }, (_, i): DiffLine => [endBefore + i, endAfter + i]),
  ]
}

/** Null if there are too many edits. */
function shortest<T>(a: readonly T[], b: readonly T[]): DiffLine[] | null {
  const most = Math.min(a.length + b.length, MOST_EDITS)
  // reached.get(k): how many lines of `a` the best path on the diagonal k has passed.
  let reached = new Map<number, number>([[1, 0]])
  const steps: ReadonlyMap<number, number>[] = []
  for (let edits = 0; edits <= most; edits++) {
    steps.push(new Map(reached))
    const next = new Map(reached)
    for (let k = -edits; k <= edits; k += 2) {
      const isDown = k === -edits || (k !== edits && at(next, k - 1) < at(next, k + 1))
      let x = isDown ? at(next, k + 1) : at(next, k - 1) + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      next.set(k, x)
      if (x >= a.length && x - k >= b.length) return backwards(steps, a.length, b.length)
    }
    reached = next
  }
  return null
}

const at = (reached: ReadonlyMap<number, number>, k: number): number => reached.get(k) ?? -1

function backwards(steps: readonly ReadonlyMap<number, number>[], lengthA: number, lengthB: number): DiffLine[] {
  const lines: DiffLine[] = []
  let [x, y] = [lengthA, lengthB]
  for (let edits = steps.length - 1; edits >= 0; edits--) {
    const reached = steps[edits] ?? new Map<number, number>()
    const k = x - y
    const isDown = k === -edits || (k !== edits && at(reached, k - 1) < at(reached, k + 1))
    const before = isDown ? k + 1 : k - 1
    const fromX = at(reached, before)
    const fromY = fromX - before
    while (x > fromX && y > fromY && x > 0 && y > 0) lines.push([--x, --y])
    if (edits === 0) break
    if (isDown) lines.push([-1, --y])
    else lines.push([--x, -1])
  }
  return lines.reverse()
}
