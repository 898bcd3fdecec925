// What the programs of bench:engines share: the values of inputs, and times as text.
import { torch } from 'tensorfx'

/** Random numbers, or integers where an input says below what. */
function valuesOf(input) {
  const { shape, below, scale = 1 } = Array.isArray(input) ? { shape: input } : input
  return {
    shape,
    below,
    data: below === undefined ? torch.randn(shape).mul(scale).toTypedArray() : torch.randint(0, below, shape).int().toTypedArray(),
  }
}

/** The values of a row's inputs, by name. */
export const inputsOf = (row) => Object.fromEntries(Object.entries(row.inputs).map(([name, input]) => [name, valuesOf(input)]))

/** Milliseconds as text. */
export const text = (ms) => (ms < 1 ? `${(1000 * ms).toFixed(1)} µs` : `${ms.toFixed(2)} ms`)
