// autocast on several ranks.
import { beforeAll, describe, expect, test } from 'vitest'
import type { World } from '../worlds.ts'

interface Trained {
  readonly operators: readonly string[]
  readonly gradients: readonly { readonly dtype: string; readonly data: readonly number[] }[]
  readonly losses: readonly number[]
}

interface Results {
  readonly trained: Readonly<Record<string, Readonly<Record<string, Trained>>>>
}

/** How far numbers of a dtype are from each other. */
const STEP: Readonly<Record<string, number>> = { bfloat16: 2 ** -8, float16: 2 ** -11 }

export const autocastSuite = ({ results }: World): void =>
  void describe('autocast', () => {
    let ranks: readonly Results[] = []
    beforeAll(() => {
      ranks = results<Results>('autocast')
    })

    describe.each(Object.keys(STEP))('%s', (dtype) => {
      const ofRank = ({ trained }: Results, way: string): Trained => trained[dtype]?.[way] ?? { operators: [], gradients: [], losses: [] }

      test.each(['ddp', 'fsdp'])('%s: every operator computes in the dtype that it has in one process', (way) => {
        for (const rank of ranks) {
          const { operators } = ofRank(rank, way)
          expect(operators.length).toBeGreaterThan(4)
          expect(operators.filter((one) => one.includes(dtype)).length).toBeGreaterThan(1)
          expect(operators.filter((one) => !one.includes(dtype)).length).toBeGreaterThan(1)
          expect(operators).toEqual(ofRank(rank, 'alone').operators)
        }
      })

      test.each(['ddp', 'fsdp'])("%s: gradients are float32, and within the dtype's rounding those of one process", (way) => {
        for (const rank of ranks) {
          const alone = ofRank(rank, 'alone').gradients
          const together = ofRank(rank, way).gradients
          expect(together.map((gradient) => gradient.dtype)).toEqual(alone.map(() => 'float32'))
          for (const [i, { data }] of together.entries()) {
            const expected = alone[i]?.data ?? []
            expect(data).toHaveLength(expected.length)
            const largest = Math.max(...expected.map(Math.abs))
            const far = Math.max(...data.map((value, j) => Math.abs(value - (expected[j] ?? NaN))))
            expect(far).toBeLessThan(8 * (STEP[dtype] ?? 0) * largest)
          }
        }
      })

      test.each(['ddp', 'fsdp'])('%s: 20 steps have the losses of one process', (way) => {
        for (const rank of ranks) {
          const { losses } = ofRank(rank, way)
          expect(losses).toHaveLength(20)
          for (const [i, loss] of losses.entries()) expect(Math.abs(loss / (ofRank(rank, 'alone').losses[i] ?? NaN) - 1)).toBeLessThan(0.01)
        }
      })
    })
  })
