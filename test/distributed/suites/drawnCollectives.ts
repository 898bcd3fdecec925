// Drawn collectives are what one process computes, whatever way their data goes.
import { describe, expect, test } from 'vitest'
import type { World } from '../worlds.ts'

interface Found {
  readonly drawn: readonly string[]
  readonly sameBits: readonly string[]
  readonly overtaken: readonly number[]
}

export const drawnCollectivesSuite = ({ size, results }: World): void =>
  void describe('drawn collectives', () => {
    const found = (): readonly Found[] => results<Found>('drawnCollectives')

    test('are those of one process, in every dtype, reduction and size', () => {
      expect(found().map(({ drawn }) => drawn)).toEqual(Array.from({ length: size }, () => []))
    })

    test('give sums with the same bits on every rank', () => {
      expect(found().map(({ sameBits }) => sameBits)).toEqual(Array.from({ length: size }, () => []))
    })

    test('end where a small one is waited for while a large one is under way', () => {
      expect(found().map(({ overtaken }) => overtaken)).toEqual(Array.from({ length: size }, () => [size, size, size]))
    })
  })
