// Checkpoints between worlds of different sizes, and checkpoints that do not fit.
import { beforeAll, describe, expect, test } from 'vitest'
import { close } from '../goldens.ts'
import type { World } from '../worlds.ts'

type Parameters = readonly (readonly number[])[]

interface Results {
  readonly worldSizes: Readonly<Record<string, { readonly expected: Parameters | null; readonly found: readonly (Parameters | null)[] }>>
  readonly unfit: Readonly<Record<string, unknown>>
}

export const checkpointsSuite = ({ size, results }: World): void =>
  void describe('checkpoints', () => {
    let ranks: readonly Results[] = []
    beforeAll(() => {
      ranks = results<Results>('checkpoints')
    })

    const relays = size === 4 ? '2, 4, 1 and 3, 4, 3, 1' : '2, 1, 2 and 1, 2'
    test.each(['flat', 'orig', 'fullyShard'])(`%s: what ${relays} ranks train one after the other is what one process trains`, (way) => {
      const { expected, found } = ranks[0]?.worldSizes[way] ?? {}
      expect(expected?.length).toBeGreaterThan(4)
      expect(found).toHaveLength(4)
      for (const parameters of found ?? []) expected?.forEach((values, i) => close(parameters?.[i], values, `parameter ${i}`))
    })

    test('an incomplete or damaged checkpoint is refused on every rank, and says what is wrong', () => {
      for (const [rank, { unfit }] of ranks.entries()) {
        for (const way of ['negative', 'otherDtype'])
          if (rank > 0) expect(unfit[way]).toMatch(/ArgumentError: ShardedTensor\.fromLocalShards: rank 0 cannot pass its parts: \S/)
        expect(unfit['lost']).toMatch(/ArgumentError: .*The first missing element is at \[\d+, 0\]: pass all parts that were saved/)
        expect(unfit['twice']).toMatch(/ArgumentError: .*the parts at \[0, 0\] and \[0, 0\] overlap/)
        expect(unfit['outside']).toMatch(/ArgumentError: .*at \[1000, 0\] is outside of the tensor/)
        expect(unfit['negative']).toMatch(/ArgumentError: .*\[0\] must be an integer from 0 on, got -1/)
        expect(unfit['otherDtype']).toMatch(
          /ArgumentError: .*shards\[0\] must be a float32 Tensor with 2 offsets, got one of float64 and shape \[\d, 8\]/,
        )
        expect(unfit['unnamed']).toMatch(/Missing key\(s\) in stateDict: "[\w.]+"/)
        expect(unfit['unchanged']).toBe(true)
      }
    })

    test('a local state dict of another number of ranks is refused, strict or not', () => {
      const members = ranks.slice(0, size / 2)
      for (const { unfit } of members)
        for (const strict of [true, false])
          expect(unfit[`local ${strict}`]).toMatch(/LoadStateError: .*"_flat_param" is divided otherwise than this model's, which is on/s)
    })
  })
