// Numbers as lines of a training and its page write them. The page is a bundle, so this imports nothing.

/** A number in few digits: `0.0123`, `12.35`, `1.2e-8`. */
export function shortNumber(value: number): string {
  const size = Math.abs(value)
  if (!Number.isFinite(value) || value === 0) return String(value)
  return size < 1e-3 || size >= 1e6 ? value.toExponential(2) : String(Number(value.toPrecision(4)))
}
