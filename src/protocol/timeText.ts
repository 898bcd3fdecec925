// Times as texts. Pages use it too, so it imports nothing.

/** A time in milliseconds: `350 µs`, `12.3 ms`, `4.0 s`. */
export function timeText(milliseconds: number): string {
  if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(2)} s`
  if (milliseconds >= 100) return `${milliseconds.toFixed(0)} ms`
  if (milliseconds >= 1) return `${milliseconds.toFixed(milliseconds < 10 ? 2 : 1)} ms`
  return `${(milliseconds * 1000).toFixed(milliseconds < 0.1 ? 1 : 0)} µs`
}
