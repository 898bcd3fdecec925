// Checkpoints that several ranks write: what they train in turns, in one way of dividing a model or another, and what each rank has of its own.
import { beforeAll, describe, expect, test } from 'vitest'
import { close } from '../goldens.ts'
import type { World } from '../worlds.ts'

type Parameters = readonly (readonly number[])[]

interface Results {
  readonly relays: { readonly expected: Parameters | null; readonly found: Readonly<Record<string, Parameters | null>> }
  readonly own: {
    readonly next: readonly number[]
    readonly resumed: readonly number[]
    readonly drawn: readonly number[]
    readonly redrawn: readonly number[]
    readonly files: readonly string[]
    readonly refused?: string
    readonly isLeft?: boolean
    readonly unsaved: string
    readonly afterUnsaved: string
    readonly unloaded: string
    readonly isUntouched: boolean
  }
}

export const checkpointFilesSuite = ({ size, results }: World): void =>
  void describe('checkpoints in files', () => {
    let ranks: readonly Results[] = []
    beforeAll(() => {
      ranks = results<Results>('checkpointFiles')
    })

    test('what ranks train in turns, in other numbers and ways, is what one process trains', () => {
      const { expected, found = {} } = ranks[0]?.relays ?? {}
      expect(expected?.length).toBeGreaterThan(4)
      expect(Object.keys(found).length).toBeGreaterThan(2)
      for (const [legs, parameters] of Object.entries(found))
        expected?.forEach((values, i) => close(parameters?.[i], values, `${legs}: parameter ${i}`))
    })

    test('each rank goes on with its own random numbers, and its own batches', () => {
      for (const { own } of ranks) {
        expect(own.next).toHaveLength(24 / size - 2)
        expect(own.resumed).toEqual(own.next)
        expect(own.redrawn).toEqual(own.drawn)
        expect(own.files).toEqual(['manifest.json', ...ranks.map((_, rank) => `rank-${rank}.safetensors`)])
      }
      expect(new Set(ranks.map(({ own }) => String(own.drawn))).size).toBe(size)
      expect(new Set(ranks.map(({ own }) => String(own.next))).size).toBe(size)
    })

    test('on fewer ranks a pass over the data is refused, and the generator stays as it is', () => {
      for (const { own } of ranks.slice(0, size / 2)) {
        expect(own.refused).toMatch(
          /ArgumentError: loadCheckpoint: 'data' was saved by \d ranks, and is in the middle of a pass .* Load it on \d ranks/,
        )
        expect(own.isLeft).toBe(true)
      }
    })

    test('what one rank cannot do, all hear of, and nothing has changed', () => {
      for (const [rank, { own }] of ranks.entries()) {
        expect(own.unsaved).toMatch(
          rank === size - 1 ? /ArgumentError: .*scaler\.f is a function/ : /DistributedError: .*rank \d cannot save its state/,
        )
        expect(own.afterUnsaved).toBe('checkpoint-00000001')
        expect(own.unloaded).toMatch(rank === size - 1 ? /Error: not this one/ : /DistributedError: .*rank \d cannot load 'scaler': not this one/)
        expect(own.isUntouched).toBe(true)
      }
    })
  })
