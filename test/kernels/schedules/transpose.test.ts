// Which kernels read along another dimension than they write along, and which bits copies keep. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { bufferParam, cast, forLoop, load, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { Index, LoopVar, Size, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { pointwiseKernel } from '../../../src/kernels/schedules/pointwise.ts'
import { transpose } from '../../../src/kernels/schedules/transpose.ts'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { runBoth } from '../harness.ts'
import { drawNest } from '../problems/nests.ts'

describe('kernels that read along another dimension than they write along', () => {
  test('are taken wherever a dimension without gaps is another one in the source than in the target', () => {
    let turned = 0
    for (let i = 0; i < 200; i++) {
      const drawn = drawNest(randomFrom(i))
      if (!drawn.turned) continue
      turned++
      expect(transpose.match(drawn.nest), `nest ${i}`).toBe(true)
    }
    expect(turned).toBeGreaterThan(40)
  })

  const [i, j] = [loopVar('i', 8), loopVar('j', 12)]
  const [out, a, b] = [bufferParam('out', 'float32', 'readwrite'), bufferParam('a', 'float32'), bufferParam('b', 'int32')]
  const over = (first: Size, second: Size): Index => ({
    base: 0,
    terms: [
      { loop: i, stride: first },
      { loop: j, stride: second },
    ],
    dynamic: [],
  })
  const matches = (loops: readonly LoopVar[], ...body: readonly Stmt[]): boolean => transpose.match({ name: 'k', params: [out, a, b], loops, body })

  test('are taken only where iterations in another order compute the same', () => {
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 8))))).toBe(true)
    // The other tensor is read as it is written.
    expect(matches([i, j], store(out, over(12, 1), load(a, over(12, 1))))).toBe(false)
    // A value for each row needs no tile.
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 0))))).toBe(false)
    // Stores that read what others write.
    expect(matches([i, j], store(out, over(12, 1), load(out, over(1, 8))))).toBe(false)
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 8)), 'add'))).toBe(false)
    expect(matches([i, j], store(out, { ...over(12, 1), dynamic: [{ value: load(b, over(1, 8)), stride: 1 }] }, load(a, over(1, 8))))).toBe(false)
    // Stores without neighbours.
    expect(matches([i, j], store(out, over(24, 2), load(a, over(1, 8))))).toBe(false)
    expect(matches([i, j], forLoop(loopVar('k', 2), 'serial', [store(out, over(12, 1), load(a, over(1, 8)))]))).toBe(false)
  })

  test('and others run in lanes along their innermost loop', () => {
    const kernel = pointwiseKernel({ name: 'k', params: [out, a], loops: [i, j], body: [store(out, over(12, 1), load(a, over(12, 1)))] }, true)
    const [outer] = kernel.body
    expect(outer?.kind === 'for' && outer.body).toMatchObject([{ kind: 'for', mode: 'simd', loop: j }])
  })

  test('other nests are refused by name', () => {
    expect(() => transpose.spec({ name: 'k', params: [], loops: [], body: [] })).toThrow(/kernel k/)
  })

  test('copies of halves keep all bits, those of NaN too, in tiles and in lanes', () => {
    const words = Uint16Array.from({ length: 65536 }, (_, k) => k)
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const [to, from] = [bufferParam('to', dtype, 'write'), bufferParam('from', dtype)]
      const [r, c] = [loopVar('r', 256), loopVar('c', 256)]
      const index = (row: number, column: number): Index => ({
        ...over(0, 0),
        terms: [
          { loop: r, stride: row },
          { loop: c, stride: column },
        ],
      })
      for (const [row, column] of [
        [1, 256],
        [256, 1],
      ] as const) {
        const body = [store(to, index(256, 1), cast(cast(load(from, index(row, column)), 'float32'), dtype))]
        const { wasm } = runBoth(pointwiseKernel({ name: 'halves', params: [to, from], loops: [r, c], body }, true), {
          to: new Uint16Array(65536),
          from: words,
        })
        const copied = new Uint16Array(wasm['to']?.buffer ?? new ArrayBuffer(0))
        expect(words.findIndex((word, k) => copied[row === 1 ? (k % 256) * 256 + (k >> 8) : k] !== word)).toBe(-1)
      }
    }
  })
})
