// Loops as people write them (bench/loops.mjs): compiled, they leave behind what they leave behind eagerly, with the graphs that docs/guide/compile.md says.
import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { compiled, loops } from '../../bench/loops.mjs'

const table = readFileSync(new URL('../../docs/guide/compile.md', import.meta.url), 'utf8')
const STEPS = 12

describe.each(loops)('$name', (loop) => {
  it('leaves behind what it leaves behind eagerly, and its graphs are those of the table', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const [eager, fast] = [loop.make((fn) => fn), compiled(loop)]
    for (let i = 0; i < STEPS; i++) {
      eager.step(i)
      fast.step(i)
    }
    const [expected, got] = [eager.state(), fast.state()]
    expect(got).toHaveLength(expected.length)
    for (const [i, value] of expected.entries()) {
      const other = got[i]
      if (!(value instanceof Tensor) || !(other instanceof Tensor)) expect(other).toBeCloseTo(Number(value), 4)
      else expect(torch.allclose(other.detach(), value.detach(), { rtol: 1e-3, atol: 1e-4 })).toBe(true)
    }
    const row = table.split('\n').find((line) => line.startsWith(`| ${loop.name} `))
    expect(row?.split('|')[2]?.trim()).toBe(loop.grows === true ? 'one for each size' : String(fast.graphs()))
    warn.mockRestore()
  })
})
