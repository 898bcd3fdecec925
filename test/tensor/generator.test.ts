// Generators: seeds, offsets, states.
import { expect, test } from 'vitest'
import { ArgumentError } from '../../src/errors/index.ts'
import { Generator, defaultGenerator, getRngState, manualSeed, philox, setRngState } from '../../src/tensor/index.ts'

test('each draw has the next offset; seed and offset come in signed halves', () => {
  const generator = new Generator(2 ** 33 + 2 ** 31 + 5)
  expect(generator.draw()).toEqual({ seedLo: -(2 ** 31) + 5, seedHi: 2, offsetLo: 0, offsetHi: 0 })
  expect(generator.draw().offsetLo).toBe(1)
  generator.setState({ seed: 7, offset: 2 ** 32 + 3 })
  expect(generator.draw()).toEqual({ seedLo: 7, seedHi: 0, offsetLo: 3, offsetHi: 1 })
  expect(generator.getState()).toEqual({ seed: 7, offset: 2 ** 32 + 4 })
  expect(generator.initialSeed()).toBe(7)
})

test('a seed starts again from the first offset, and so does a state from its own', () => {
  const generator = new Generator()
  expect(generator.initialSeed()).toBe(0)
  generator.draw()
  expect(generator.manualSeed(3)).toBe(generator)
  expect(generator.getState()).toEqual({ seed: 3, offset: 0 })
  generator.draw()
  const state = generator.getState()
  const next = generator.draw()
  expect(generator.setState(state)).toBe(generator)
  expect(generator.draw()).toEqual(next)
})

test('seeds and offsets are checked, and a bad state changes nothing', () => {
  const limits = 'must be an integer between 0 and 2^53 - 1'
  expect(() => new Generator(-1)).toThrow(ArgumentError)
  expect(() => new Generator(-1)).toThrow(`Generator: seed ${limits}, got -1.`)
  expect(() => new Generator(2 ** 53)).toThrow(`got ${2 ** 53}.`)
  const generator = new Generator(4)
  expect(() => generator.manualSeed(1.5)).toThrow(`manualSeed: seed ${limits}, got 1.5.`)
  expect(() => generator.setState({ seed: 1, offset: NaN })).toThrow(`Generator.setState: offset ${limits}, got NaN.`)
  expect(() => generator.setState({ seed: -2, offset: 0 })).toThrow(`Generator.setState: seed ${limits}, got -2.`)
  expect(generator.getState()).toEqual({ seed: 4, offset: 0 })
})

test('the default generator is seeded and restored by functions of its own', () => {
  const before = getRngState()
  expect(manualSeed(11)).toBe(defaultGenerator)
  const first = defaultGenerator.draw()
  const state = getRngState()
  expect(state).toEqual({ seed: 11, offset: 1 })
  defaultGenerator.draw()
  setRngState(state)
  expect(getRngState()).toEqual(state)
  manualSeed(11)
  expect(defaultGenerator.draw()).toEqual(first)
  setRngState(before)
})

test('philox is Philox4x32-10, by the vectors of its authors', () => {
  const draw = (word: number): { seedLo: number; seedHi: number; offsetLo: number; offsetHi: number } => ({
    seedLo: word,
    seedHi: word,
    offsetLo: word,
    offsetHi: word,
  })
  expect(philox(draw(0), 0)).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8])
  const words = [
    philox({ ...draw(0), seedLo: 1 }, 0),
    philox({ ...draw(0), seedHi: 1 }, 0),
    philox({ ...draw(0), offsetLo: 1 }, 0),
    philox({ ...draw(0), offsetHi: 1 }, 0),
    philox(draw(0), 1),
  ]
  expect(new Set(words.map(String)).size).toBe(words.length)
})
