// Settings of compile: which values they take, and what a wrong one says.
import { describe, expect, it } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { config, withConfig } from 'tensorfx/compile'
import type { Config } from 'tensorfx/compile'
import { configDifferences } from '../src/config.ts'

const inRange: readonly Partial<Config>[] = [
  ...[1, 2, 3, 4].map((reproLevel) => ({ reproLevel })),
  ...(['dynamo', 'aot', null] as const).map((reproAfter) => ({ reproAfter })),
  ...[0, 1, 100].map((recompileLimit) => ({ recompileLimit })),
  ...[0, 0.5].map((reproTolerance) => ({ reproTolerance })),
  ...[true, false].flatMap((on) => [{ suppressErrors: on }, { reproForwardOnly: on }, { reproIgnoreNonFp: on }, { sameTwoModelsUseFp64: on }]),
]

const LEVELS = 'config.reproLevel must be 1, 2, 3 or 4, got'
const outOfRange: readonly (readonly [string, unknown, string])[] = [
  ['reproLevel', 0, `${LEVELS} 0.`],
  ['reproLevel', 5, `${LEVELS} 5.`],
  ['reproLevel', 2.5, `${LEVELS} 2.5.`],
  ['reproAfter', 'inductor', "config.reproAfter must be 'dynamo', 'aot' or null, got 'inductor'."],
  ['reproAfter', undefined, "config.reproAfter must be 'dynamo', 'aot' or null, got undefined."],
  ['recompileLimit', -1, 'config.recompileLimit must be a number that is at least 0, got -1.'],
  ['recompileLimit', '8', "config.recompileLimit must be a number that is at least 0, got '8'."],
  ['reproTolerance', Number.NaN, 'config.reproTolerance must be a number that is at least 0, got NaN.'],
  ['suppressErrors', 'yes', "config.suppressErrors must be true or false, got 'yes'."],
  ['reproForwardOnly', 1, 'config.reproForwardOnly must be true or false, got 1.'],
]

describe('a setting', () => {
  it.each(inRange)('takes %j, and withConfig takes it back', (patch) => {
    const before = { ...config }
    withConfig(patch, () => {
      expect(config).toMatchObject(patch)
      // Differences are what a repro script sets: none of the others has changed.
      expect(Object.keys(configDifferences()).filter((key) => !(key in patch))).toEqual([])
    })
    expect({ ...config }).toEqual(before)
    expect(configDifferences()).toEqual({})
  })

  it.each(outOfRange)('%s refuses %j, by either way', (key, value, message) => {
    const before = { ...config }
    expect(() => withConfig({ [key]: value }, () => 0)).toThrow(new ArgumentError(message))
    expect(() => Object.assign(config, { [key]: value })).toThrow(new ArgumentError(message))
    expect({ ...config }).toEqual(before)
  })

  it('that does not exist is an error that lists those that do', () => {
    expect(() => withConfig({ reproLevle: 3 } as never, () => 0)).toThrow(
      "config: unknown option 'reproLevle'; did you mean 'reproLevel'? Known are reproAfter, reproLevel,",
    )
  })

  it('that differs from its default is what configDifferences returns', () => {
    withConfig({ reproLevel: 3, suppressErrors: true, recompileLimit: 8 }, () => {
      expect(configDifferences()).toEqual({ reproLevel: 3, suppressErrors: true })
    })
  })
})

describe('withConfig with an async function', () => {
  it('keeps the settings until its promise is fulfilled or rejected', async () => {
    const before = { ...config }
    const seen = await withConfig({ recompileLimit: 3 }, async () => {
      await Promise.resolve()
      return config.recompileLimit
    })
    expect([seen, config.recompileLimit]).toEqual([3, before.recompileLimit])
    const failing = withConfig({ recompileLimit: 3 }, async () => {
      await Promise.resolve()
      throw new Error(`under ${config.recompileLimit}`)
    })
    await expect(failing).rejects.toThrow('under 3')
    expect({ ...config }).toEqual(before)
  })
})
