// FSDP's debug utilities against PyTorch's: the tree of divided modules and the profiler. The fake world plays one of the ranks.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import { destroyProcessGroup, initProcessGroup, isInitialized, recordCollectives, setDebugLevel } from 'tensorfx/distributed'
import {
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  SimpleProfiler,
  fsdpModules,
  getShardedModuleTreeWithModuleNameToFqns,
  optimStateDict,
  optimStateDictToLoad,
  setProfilerLog,
  stateDictType,
} from 'tensorfx/distributed/fsdp'
import type { AutoWrapPolicy } from 'tensorfx/distributed/fsdp'
import { goldenSet } from './goldens.ts'
import * as scenario from './scenarios/fsdpModels.mjs'

const models = scenario.models as Readonly<Record<string, new () => nn.Module>>
const make = (name: string): nn.Module => {
  const type = models[name]
  if (type === undefined) throw new Error(`there is no model ${name}`)
  return scenario.init(new type()) as nn.Module
}

const mlp = (): nn.Sequential => new nn.Sequential(new nn.Linear(5, 7), new nn.ReLU(), new nn.Linear(7, 3))

type Tree = readonly [tree: string, names: Readonly<Record<string, readonly string[]>>]
const [recorded] = (goldenSet('fsdp-debug').get('debug_utils_w4')?.ranks ?? []) as readonly Readonly<Record<string, never>>[]

beforeEach(() => initProcessGroup({ backend: 'fake', worldSize: 4, rank: 0 }))
afterEach(() => {
  SimpleProfiler.reset()
  if (isInitialized()) destroyProcessGroup()
})

describe('getShardedModuleTreeWithModuleNameToFqns', () => {
  const Block = scenario.Block as new () => nn.Module
  const UnitModule = scenario.UnitModule as new () => nn.Module
  const cases: Readonly<Record<string, readonly [model: string, policy: AutoWrapPolicy | null]>> = {
    composite_unit: ['CompositeModel', new ModuleWrapPolicy([UnitModule])],
    composite_linear: ['CompositeModel', new ModuleWrapPolicy([nn.Linear])],
    tower_block: ['Tower', new ModuleWrapPolicy([Block])],
    convbn_none: ['ConvBn', null],
  }
  const runs = Object.entries(cases).flatMap(([key, [model, policy]]) =>
    [false, true].map((useOrigParams) => ({ key, model, policy, useOrigParams })),
  )

  test.each(runs)('$key, original parameters: $useOrigParams', ({ key, model, policy, useOrigParams }) => {
    const theirs = recorded?.[`${key}_${useOrigParams ? 'orig' : 'flat'}`] as unknown as Readonly<Record<string, Tree>>
    const wrapped = new FullyShardedDataParallel(make(model), { autoWrapPolicy: policy, useOrigParams })
    const expectTree = (ours: ReturnType<typeof getShardedModuleTreeWithModuleNameToFqns>, golden: string): void => {
      const [tree, names] = theirs[golden] ?? []
      expect(ours.tree).toBe(tree)
      expect(Object.fromEntries(ours.names)).toEqual(names)
    }
    // PyTorch 2.13 prints no marks for wrapped models, since it looks for the state of wrappers; the recording repeats it with that of the wrapped modules.
    expectTree(getShardedModuleTreeWithModuleNameToFqns(wrapped), 'with_inner_state')
    expectTree(getShardedModuleTreeWithModuleNameToFqns(wrapped.module), 'from_inner_module')
    expectTree(getShardedModuleTreeWithModuleNameToFqns(wrapped, { wrappers: false }), 'composable_look')
    expect(fsdpModules(wrapped)).toHaveLength(
      (theirs['composable_look']?.[0].match(/FULLY SHARDED/g) ?? []).length + (key === 'composite_linear' ? 1 : 0),
    )
  })

  test('a model that is not divided has no marks', () => {
    const { tree, names } = getShardedModuleTreeWithModuleNameToFqns(make('Mlp'))
    expect(tree).toBe('[Mlp]\n    net[Sequential]\n        net.0[Linear]\n        net.1[ReLU]\n        net.2[Linear]\n')
    expect(names.size).toBe(0)
  })

  test('with bytes: of the unit, and of the shard on each rank', () => {
    const wrapped = new FullyShardedDataParallel(new nn.Linear(256, 1024))
    const { tree } = getShardedModuleTreeWithModuleNameToFqns(wrapped, { wrappers: false, bytes: true })
    expect(tree).toBe('[Linear] FULLY SHARDED (1.0 MiB, 257.0 KiB on each of 4 ranks)\n')
  })

  test('refuses what is no module, and unknown options', () => {
    expect(() => getShardedModuleTreeWithModuleNameToFqns(3 as unknown as nn.Module)).toThrow(/model must be a Module, got 3/)
    expect(() => getShardedModuleTreeWithModuleNameToFqns(make('Mlp'), { byte: true } as object)).toThrow(/unknown option 'byte'/)
  })
})

describe('SimpleProfiler', () => {
  const lines: string[] = []
  let before: (line: string) => void
  beforeEach(() => {
    lines.length = 0
    before = setProfilerLog((line) => lines.push(line))
  })
  afterEach(() => void setProfilerLog(before))

  test('has the types of PyTorch', () => {
    expect(SimpleProfiler.Type).toEqual(recorded?.['types'])
  })

  test.each(['OFF', 'INFO', 'DETAIL'] as const)(
    '%s: inner scopes end first, the same type twice is an error, and only INFO writes a line',
    (level) => {
      type Levels = Readonly<
        Record<string, { readonly keys_after: readonly string[]; readonly again: { readonly error: string }; readonly log: string }>
      >
      const profiler = recorded?.['profiler'] as unknown as Levels | undefined
      const theirs = profiler?.[level]
      setDebugLevel(level.toLowerCase() as Lowercase<typeof level>)
      SimpleProfiler.profile('all', () => SimpleProfiler.profile('inner', () => undefined))
      expect(Object.keys(SimpleProfiler.results)).toEqual(theirs?.keys_after)
      const twice = (): void => SimpleProfiler.profile('x', () => SimpleProfiler.profile('x', () => undefined))
      expect(twice).toThrow(theirs?.again.error)
      expect(SimpleProfiler.profiling).toEqual([])
      expect(Object.keys(SimpleProfiler.results)).toEqual(['inner', 'all', 'x'])
      SimpleProfiler.dumpAndReset('hello')
      expect(lines).toHaveLength(theirs?.log === '' ? 0 : 1)
      if (theirs?.log !== '') expect(lines[0]).toMatch(/^hello \{"inner":[\d.e-]+,"all":[\d.e-]+,"x":[\d.e-]+\}$/)
      expect(SimpleProfiler.results).toEqual({})
    },
  )

  test('another rank than 0 writes nothing, and resets', async () => {
    destroyProcessGroup()
    await initProcessGroup({ backend: 'fake', worldSize: 4, rank: 1, debugLevel: 'info' })
    SimpleProfiler.profile('all', () => undefined)
    SimpleProfiler.dumpAndReset('hello')
    expect(lines).toEqual([])
    expect(SimpleProfiler.results).toEqual({})
  })

  test('times add up, also those of what throws and of promises', async () => {
    const wait = (): void => {
      for (const end = performance.now() + 2; performance.now() < end;);
    }
    SimpleProfiler.profile('sum', wait)
    const first = SimpleProfiler.results['sum'] ?? NaN
    expect(() =>
      SimpleProfiler.profile('sum', () => {
        wait()
        throw new Error('on the way')
      }),
    ).toThrow('on the way')
    expect(SimpleProfiler.results['sum']).toBeGreaterThan(first)
    const later = SimpleProfiler.profile('later', () => Promise.resolve(3))
    expect(SimpleProfiler.profiling).toEqual(['later'])
    expect(await later).toBe(3)
    expect(SimpleProfiler.profiling).toEqual([])
    const scope = SimpleProfiler.start('scope')
    scope.end()
    scope.end()
    expect(Object.keys(SimpleProfiler.results)).toEqual(['sum', 'later', 'scope'])
  })

  test('each measurement is an entry of the performance timeline', () => {
    performance.clearMeasures()
    SimpleProfiler.profile('all_gather', () => undefined)
    expect(performance.getEntriesByName('fsdp: all_gather')).toHaveLength(1)
  })

  test.each(['FULL_STATE_DICT', 'SHARDED_STATE_DICT'] as const)('%s: loading and saving are profiled as in PyTorch', (type) => {
    const profiler = recorded?.['profiler'] as unknown as Readonly<
      Record<string, Readonly<Record<string, Readonly<Record<string, readonly (readonly string[])[]>>>>>
    >
    const theirs = profiler[`calls_${type}`] ?? {}
    setDebugLevel('info')
    const model = new FullyShardedDataParallel(mlp())
    const optimizer = new optim.Adam([...model.parameters()])
    model(torch.ones([2, 5]))
      .sum()
      .backward()
    optimizer.step()
    lines.length = 0
    const keysOf = (line: string | undefined): readonly [string, readonly string[]] => {
      const [, message = '', json = '{}'] = /^(.*? profiling: ) ?(\{.*\})$/.exec(line ?? '') ?? []
      return [message, Object.keys(JSON.parse(json) as object)]
    }
    stateDictType(model, type, () => {
      model.loadStateDict(model.stateDict())
      const [message, keys] = keysOf(lines.pop())
      expect(keys).toEqual(theirs['after_state_dict']?.[message]?.[0])
      const state = optimStateDict(model, optimizer)
      const [saving, saved] = keysOf(lines.pop())
      const expected = theirs['after_optim_state_dict']?.[saving]?.[0] ?? []
      // There is one device and no phase of its own before the gathering.
      expect(expected).toEqual(expect.arrayContaining(saved.slice()))
      expect(saved.at(-1)).toBe('all')
      optimizer.loadStateDict(optimStateDictToLoad(model, optimizer, state))
      const [loading, loaded] = keysOf(lines.pop())
      expect(loaded).toEqual(theirs['after_optim_load']?.[loading]?.[0])
    })
  })
})

test('a timeline has units and collectives, as events that trace viewers read', () => {
  const model = new FullyShardedDataParallel(mlp())
  const events = recordCollectives(() =>
    model(torch.ones([2, 5]))
      .sum()
      .backward(),
  )
  expect(events.map(({ name, cat }) => `${cat} ${name}`)).toEqual([
    'fsdp unshard',
    'collective allgather',
    'fsdp reshard keep',
    'fsdp unshard(noop)',
    'fsdp reshard free',
    'collective reducescatter',
  ])
  const again = JSON.parse(JSON.stringify(events)) as readonly {
    readonly ts: number
    readonly ph: string
    readonly args: { readonly description: string }
  }[]
  expect(again.every(({ ph }) => ph === 'X')).toBe(true)
  expect(again.map(({ ts }) => ts)).toEqual(again.map(({ ts }) => ts).toSorted((a, b) => a - b))
  expect(again[0]?.args.description).toBe('Sequential:0.weight')
})
