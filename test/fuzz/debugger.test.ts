// Random programs mean the same with every setting of the debugger as without, bit for bit. `npm run fuzz:compile -- N seed --debugger` runs more of them.
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { settings } from '../../scripts/fuzz/debugger.mjs'
import { fuzzOne, passingKinds } from '../../scripts/fuzz/fuzz.mjs'
import type { FuzzFailure } from '../../scripts/fuzz/fuzz.mjs'
import { config } from '../../src/config.ts'
import { interceptBackends, runnable } from '../../src/dynamo/index.ts'
import { GraphModule } from '../../src/fx/index.ts'
import { torch } from '../../src/index.ts'
import { api } from './api.ts'
import { tenth } from '../helpers/rotation.ts'

/** What is wrong with the debugger. */
const mutant = vi.hoisted(() => ({ skipsCopies: false, leavesTraces: false }))
beforeEach(() => void Object.assign(mutant, { skipsCopies: false, leavesTraces: false }))

vi.mock('../../src/debug/runs/isolated.ts', async (original) => {
  const real = await original<typeof import('../../src/debug/runs/isolated.ts')>()
  const isolated: typeof real.isolated = (model, inputs) => (mutant.skipsCopies ? { model, inputs: [...inputs] } : real.isolated(model, inputs))
  const contained: typeof real.contained = (fn) => {
    if (!mutant.leavesTraces) return real.contained(fn)
    return fn(real.contained((trace) => trace))
  }
  return { ...real, isolated, contained }
})

const kinds = passingKinds('compile')
const fails = (seed: number, only: readonly string[], chosen = settings): FuzzFailure | null =>
  fuzzOne(api, seed, { kinds: only, settings: chosen, shrinking: false })

const text = (f: FuzzFailure | null): string =>
  f === null ? '' : `${f.text}\n// ${f.difference.where}: ${f.difference.expected} without, ${f.difference.got} with it`

describe('random programs', () => {
  it.each(
    tenth(
      Array.from({ length: 12 }, (_, i) => 60_000 + i),
      String,
    ),
  )('the program of seed %d means the same with each setting of the debugger', (seed) => expect(text(fails(seed, kinds))).toBe(''))
})

describe('a debugger that touches the program is found', () => {
  const level4 = settings.filter(({ reproLevel }) => reproLevel === 4)
  const found = (): boolean => [70_000, 70_001, 70_002, 70_003].some((seed) => fails(seed, ['inplace', 'closureTensors', 'random'], level4) !== null)

  it('not at all, if nothing is wrong with it', () => expect(found()).toBe(false))

  it('if it judges a call on the tensors of the program', () => {
    mutant.skipsCopies = true
    expect(found()).toBe(true)
  })

  it('if what it runs leaves traces', () => {
    mutant.leavesTraces = true
    // A backend whose code draws random numbers: it is run again to be judged.
    using drawing = interceptBackends('aot', (backend) => (gm, inputs) => {
      const run = runnable(backend(gm, inputs))
      return (...values) => {
        torch.rand([1])
        return run(...values)
      }
    })
    expect(drawing).toBeDefined()
    expect(found()).toBe(true)
    mutant.leavesTraces = false
    expect(found()).toBe(false)
  })

  it('if it reads what a call writes by running it once more', () => {
    using twice = interceptBackends('dynamo', (backend) => (gm, inputs) => {
      const code = backend(gm, inputs)
      const run = runnable(code)
      const { writtenInPlace = new Set<number>() } = code instanceof GraphModule ? {} : code
      const again = (...values: readonly unknown[]): unknown => {
        if (config.reproAfter !== null) run(...values)
        return run(...values)
      }
      return Object.assign(again, { writtenInPlace })
    })
    expect(twice).toBeDefined()
    expect(found()).toBe(true)
  })
})
