// fit on several ranks: its numbers are those of one process that reads whole batches.
import { beforeAll, describe, expect, test } from 'vitest'
import { stepsTaken, trainAll } from '../scenarios/fitTraining.mjs'
import type { FitRun } from '../scenarios/fitTraining.mjs'
import type { World } from '../worlds.ts'

type Results = Readonly<Record<'ddp' | 'fsdp', Readonly<Record<string, FitRun>>>> & {
  readonly halves: Readonly<Record<'ddp' | 'fsdp', number>>
}

export const fitSuite = ({ results }: World): void =>
  void describe('fit', () => {
    let ranks: readonly Results[] = []
    let takenAlone = 0
    let alone: Readonly<Record<string, FitRun>> = {}
    beforeAll(async () => {
      ranks = results<Results>('fit')
      alone = await trainAll('alone')
      takenAlone = await stepsTaken('alone')
    })

    test.each(['ddp', 'fsdp'] as const)('%s, float16: all ranks skip the steps whose gradients are infinite on one', (way) => {
      const taken = ranks.map(({ halves }) => halves[way])
      // The ranks have the same batches, so they do as one process.
      expect(taken).toEqual(taken.map(() => takenAlone))
      expect(takenAlone).toBeGreaterThan(0)
      expect(takenAlone).toBeLessThan(9)
    })

    describe.each(['ddp', 'fsdp'] as const)('%s', (way) => {
      test.each(['classes', 'numbers', 'chance'])('%s: losses, metrics and parameters are those of one process', (task) => {
        const one = alone[task]
        for (const rank of ranks) {
          const run = rank[way][task]
          expect(run?.step).toBe(9)
          expect(run?.epochs).toHaveLength(3)
          for (const [i, epoch] of (run?.epochs ?? []).entries()) {
            const wanted = one?.epochs[i] ?? {}
            expect(Object.keys(epoch)).toEqual(Object.keys(wanted))
            for (const [name, value] of Object.entries(epoch)) expect(value, `epoch ${i}: ${name}`).toBeCloseTo(wanted[name] ?? NaN, 5)
          }
          for (const [i, values] of (run?.parameters ?? []).entries())
            for (const [j, value] of values.entries()) expect(value, `parameter ${i} at ${j}`).toBeCloseTo(one?.parameters[i]?.[j] ?? NaN, 4)
          expect(run?.parameters.flat()).toHaveLength(one?.parameters.flat().length ?? NaN)
        }
        // The ranks' own losses differ from each other, their mean is that of the whole batch.
        const losses = ranks.map((rank) => rank[way][task]?.losses ?? [])
        for (const [i, loss] of (one?.losses ?? []).entries()) {
          const own = losses.map((list) => list[i] ?? NaN)
          expect(new Set(own).size).toBe(ranks.length)
          expect(own.reduce((a, b) => a + b) / own.length).toBeCloseTo(loss, 5)
        }
      })
    })
  })
