// Memory that several values share, one after the other: each gets a place for as long as it is needed.

/** Bytes that are needed from one step to another, both included. */
export interface Span {
  readonly bytes: number
  readonly first: number
  readonly last: number
}

/** Cache-line alignment: vector loads of one value never share a line with another's stores. */
export const SPAN_ALIGN = 64

/** Places every span: largest first, each at the lowest offset that no overlapping one uses. */
export function placeSpans(spans: readonly Span[]): { readonly offsets: readonly number[]; readonly bytes: number } {
  const placed: { start: number; end: number; first: number; last: number }[] = []
  const offsets = new Array<number>(spans.length).fill(0)
  const sizeOf = ({ bytes }: Span): number => Math.ceil(bytes / SPAN_ALIGN) * SPAN_ALIGN
  let bytes = 0
  for (const [i, span] of [...spans.entries()].sort(([, a], [, b]) => sizeOf(b) - sizeOf(a))) {
    const { first, last } = span
    const size = sizeOf(span)
    let start = 0
    for (const other of placed.filter((p) => p.first <= last && first <= p.last).sort((a, b) => a.start - b.start)) {
      if (start + size <= other.start) break
      start = Math.max(start, other.end)
    }
    placed.push({ start, end: start + size, first, last })
    offsets[i] = start
    bytes = Math.max(bytes, start + size)
  }
  return { offsets, bytes }
}
