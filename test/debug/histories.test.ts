// Failures that need a history: what goes wrong only at a later call. Scripts hold the calls, the minifier drops those that are not needed, then shrinks the graph; the
// result fails with the backend and passes on eager, by itself.
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, registerBackend } from 'tensorfx/compile'
import {
  AccuracyError,
  MemoryFileStore,
  fileStore,
  judge,
  minifier,
  minifyBackendFailure,
  saveGraphRepro,
  setFileStore,
  setLogSink,
} from 'tensorfx/debug'
import { Interpreter, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { removeFolder } from '../helpers/folder.ts'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import type { Backend } from '../../src/dynamo/index.ts'
import { present } from '../../src/errors/index.ts'
import { Faulty, places, randomInputs, rightValue } from './faultyBackends.ts'
import { distUrl, fileNamed, folderWith, launcherIn, runScript } from './processes.ts'
import { listen, pathOf, resetConfig, runHere, textOf, thrownBy } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  listen()
  Object.assign(config, { debugDirRoot: '/dumps', reproAfter: 'dynamo', reproLevel: 4 })
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

/** What the code of a node does at a run; `run` counts from 1. */
type Later = (value: Tensor, run: number, input: Tensor) => Tensor

/** Faults that a first call does not have. Each is made anew for a compile, since it keeps a state. */
const LATER: Readonly<Record<string, () => Later>> = {
  'wrong from the fourth run on': () => (value, run) => (run >= 4 ? value.mul(1.5).add(1) : value),
  'throws at the third run': () => (value, run) => {
    if (run >= 3) throw new RangeError('no kernel at this run')
    return value
  },
  'the result of the call before, once there were two': () => {
    let before: Tensor | null = null
    return (value, run) => {
      const result = run > 2 && before !== null && before.numel === value.numel ? before : value
      before = value.clone()
      return result
    }
  },
  'remembers results by the tensor': () => {
    const known = new WeakMap<Tensor, Tensor>()
    return (value, _run, input) => {
      const result = known.get(input) ?? value
      known.set(input, result.clone())
      return result
    }
  },
  'overwrites an input from the third run on': () => (value, run, input) => {
    if (run < 3) return value
    const result = value.clone()
    noGrad(() => input.mul_(0.5).add_(1))
    return result
  },
}

const operatorOf = (node: Node): string => (typeof node.target === 'function' ? node.target.name : String(node.target))

/** A backend whose nodes of that operator have the fault. */
function later(operator: string, make: () => Later): Backend {
  return (gm) => {
    const marked = [...gm.graph.nodes].find((node) => node.op === 'call_function' && operatorOf(node) === operator)
    if (marked === undefined) return gm
    const fault = make()
    let run = 0
    return (...inputs: readonly unknown[]) => {
      run++
      const input = inputs.find((value): value is Tensor => typeof value === 'object' && value !== null && 'storage' in value)
      const replaced = (at: Interpreter, node: Node): unknown => {
        const value = rightValue(at, node) as Tensor
        return input === undefined ? value : fault(value, run, input)
      }
      return new Faulty(gm, marked.name, replaced).run(...inputs)
    }
  }
}

const operatorsOf = (gm: GraphModule): string[] => [...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => node.name)

const STEPS: readonly ((x: Tensor, w: Tensor) => Tensor)[] = [
  (x) => x.sin(),
  (x) => x.tanh(),
  (x) => x.exp().neg(),
  (x, w) => x.mul(w),
  (x, w) => torch.mm(x, w),
  (x, w) => torch.maximum(x, w).add(x),
  (x) => x.softmax(-1),
]

/** A chain of operators on the first input. */
function program(seed: number): GraphModule {
  const { pick } = randomFrom(seed)
  return symbolicTrace((a: Tensor, b: Tensor) => {
    let x = a
    for (let i = 0; i < 5; i++) x = pick(STEPS)(x, b)
    return x.add(b)
  })
}

const CALLS = 5
/** The inputs of a program's calls. Their second tensor stays as it is, as weights do. */
function callsOf(seed: number): readonly (readonly Tensor[])[] {
  const [, weight] = randomInputs(seed)
  return Array.from({ length: CALLS }, (_, call) => [present(randomInputs(100 * seed + call)[0], 'an input'), present(weight, 'a weight')])
}

const seeds = Array.from({ length: Number(process.env['TENSORFX_FAULTS'] ?? 4) }, (_, i) => i)

describe.each(Object.entries(LATER))('%s', (fault, make) => {
  it.each(seeds)('is caught, and minified to its calls and its node (program %i)', async (seed) => {
    const gm = program(seed)
    const node = randomFrom(seed).pick(places(gm))
    const backend = `${fault.replaceAll(' ', '_').replace(',', '')}_${seed}`
    registerBackend(backend, later(operatorOf(node), make))
    const calls = callsOf(seed)
    const compiled = compile((a: Tensor, b: Tensor) => gm.forward(a, b), { backend })
    // A program that keeps its tensors, as training loops keep weights.
    const [x, w] = (calls[0] ?? []).map((value) => value.clone())
    const error = thrownBy(() => {
      for (const [a] of calls) {
        noGrad(() => present(x, 'x').copy_(present(a, 'a')))
        compiled(present(x, 'x'), present(w, 'w'))
      }
    })
    expect(error.message).toMatch(fault.startsWith('throws') ? /no kernel at this run/ : /Bad accuracy/)

    const launched = await runHere(store, pathOf(store, 'minifier_launcher.mjs'), ['--no-isolate', '--backend', backend])
    expect([launched.error, launched.output]).toEqual([null, expect.stringContaining('Wrote minimal repro')])
    const path = [...store.files.keys()].find((name) => name.endsWith('/repro.mjs')) ?? ''
    const text = textOf(store, path)
    // Level 4 makes each call again, on copies: two calls are four runs.
    expect([...text.matchAll(/= torch\.\w+\(/g), ...text.matchAll(/nextCall/g)], text).toHaveLength(2)

    const failing = await runHere(store, path, ['--backend', backend])
    expect([failing.exitCode, failing.output]).toEqual([1, expect.stringContaining('with eager: passes')])
    const right = await runHere(store, path, ['--backend', 'eager'])
    expect([right.error, right.exitCode]).toEqual([null, undefined])
  })
})

describe('a failure that needs no history', () => {
  it('is judged by its last call alone, though the script has those before', async () => {
    registerBackend('negative_is_wrong', (gm) => (...inputs: readonly unknown[]) => {
      const replaced = (at: Interpreter, node: Node): unknown => {
        const value = rightValue(at, node) as Tensor
        return torch.where(value.lt(0), value.mul(2), value)
      }
      return new Faulty(gm, 'sin', replaced).run(...inputs)
    })
    const f = compile((x: Tensor) => x.sin().cos().mul(3), { backend: 'negative_is_wrong' })
    expect(thrownBy(() => [0.5, 0.75, -1].forEach((x) => f(torch.full([3], x)))).message).toContain('Bad accuracy')
    expect(textOf(store, pathOf(store, 'minifier_launcher.mjs')).match(/nextCall/g)).toHaveLength(2)
    const launched = await runHere(store, pathOf(store, 'minifier_launcher.mjs'), ['--no-isolate', '--backend', 'negative_is_wrong'])
    expect(launched.output).toContain('The last call fails by itself: 2 calls before it are not needed')
    const text = textOf(store, [...store.files.keys()].find((name) => name.endsWith('/repro.mjs')) ?? '')
    expect([text.match(/nextCall/g), text.match(/contract/g), text.match(/= torch\.\w+/g)]).toEqual([null, null, ['= torch.sin']])
  })
})

describe('the minifier', () => {
  const gm = (): GraphModule => symbolicTrace((x: Tensor, y: Tensor) => [torch.cos(torch.mul(torch.relu(torch.sin(x)), y))])
  const w = torch.ones([2])
  const firstOf = (x: unknown): unknown => (x as Tensor).toTypedArray()[0]
  const call = (value: number): readonly Tensor[] => [torch.full([2], value), w]

  it('drops calls first, and gives an operator the inputs that it had in each call that is left', async () => {
    const seen: string[] = []
    const { inputs, earlier, ...result } = await minifier(
      gm(),
      call(5),
      (candidate, last, before) => {
        seen.push(`${operatorsOf(candidate).length}:${before.length}`)
        return operatorsOf(candidate).includes('relu') && before.length > 0 && last.length > 0
      },
      { earlier: [call(1), call(2), call(3)] },
    )
    expect([operatorsOf(result.gm), inputs, earlier]).toEqual([['relu'], [expect.anything()], [[expect.anything()]]])
    const values = [...earlier, inputs].map(([x]) => (x as Tensor).toArray())
    expect(values).toEqual([3, 5].map((x) => torch.full([2], x).sin().toArray()))
    expect(seen.slice(0, 4)).toEqual(['4:3', '4:0', '4:1', '3:1'])
  })

  it('finds the call that matters among many', async () => {
    const calls = Array.from({ length: 12 }, (_, i) => call(i))
    const { earlier, queries } = await minifier(
      symbolicTrace((x: Tensor, y: Tensor) => [torch.add(x, y)]),
      call(99),
      (_candidate, _last, before) => [4, 9].every((value) => before.some(([x]) => firstOf(x) === value)),
      { earlier: calls },
    )
    expect(earlier.map(([x]) => firstOf(x))).toEqual([4, 9])
    expect(queries).toBeLessThan(20)
  })

  it('refuses calls with another number of inputs', async () => {
    const search = minifier(gm(), call(1), () => true, { earlier: [call(1), [w]] })
    await expect(search).rejects.toThrow('minifier: the graph has 2 placeholders but earlier[1] has 1 inputs.')
    await expect(minifier(gm(), call(1), () => true, { earlier: [w] as never })).rejects.toThrow('earlier[0]')
    expect(() => judge(gm(), call(1), { ...spec, backend: 'eager' }, undefined, 'no' as never)).toThrow('earlier')
  })
})

const spec = { backend: 'eager', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true } as const

describe('a process that ends at a later call', () => {
  const folders: string[] = []
  afterAll(() => folders.forEach((folder) => removeFolder(folder)))

  it('is followed by one that makes the same calls: the launcher of level 3 finds them, and the repro ends in the same way', async () => {
    const folder = folderWith({
      'backend.mjs': `import { registerBackend } from '${distUrl('entries/compile.js')}'
registerBackend('dies_later', (gm) => {
  let runs = 0
  const isFaulty = [...gm.graph.nodes].some((node) => node.name.startsWith('exp'))
  return (...inputs) => {
    if (isFaulty && ++runs === 3) process.exit(7)
    return gm.forward(...inputs)
  }
}, { module: import.meta.url })
`,
      'program.mjs': `import './backend.mjs'
import { compile, torch } from '${distUrl('index.js')}'
const f = compile((x) => x.sin().exp(), { backend: 'dies_later' })
for (let step = 0; step < 5; step++) f(torch.full([3], step))
`,
    })
    folders.push(folder)
    const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '3' }
    expect(await runScript(folder, 'program.mjs', [], { env })).toMatchObject({ how: 'exit 7' })
    const launched = await runScript(folder, present(launcherIn(folder), 'a launcher'), ['minify'])
    expect(launched).toMatchObject({ how: 'exit 0', output: expect.stringContaining('Wrote minimal repro') as string })
    const repro = present(fileNamed(folder, 'repro.mjs'), 'a repro')
    const text = readFileSync(repro, 'utf8')
    expect([text.match(/= torch\.\w+/g), text.match(/nextCall/g)?.length]).toEqual([['= torch.exp'], 2])
    expect(await runScript(folder, repro)).toMatchObject({ how: 'exit 1', output: expect.stringContaining('exit code 7') as string })
    expect(await runScript(folder, repro, ['--backend', 'eager', '--no-death'])).toMatchObject({ how: 'exit 0' })
  }, 240_000)
})

describe('an error that comes after the call', () => {
  const folders: string[] = []
  afterAll(() => folders.forEach((folder) => removeFolder(folder)))

  it.each([
    ['a rejected promise that nothing awaits', "void Promise.reject(new RangeError('too late'))"],
    ['a callback of the next turn', "setImmediate(() => { throw new RangeError('too late') })"],
  ])(
    'ends the program, and is found by the launcher of level 3: %s',
    async (_what, code) => {
      const folder = folderWith({
        'backend.mjs': `import { registerBackend } from '${distUrl('entries/compile.js')}'
registerBackend('rejects_late', (gm) => {
  const isFaulty = [...gm.graph.nodes].some((node) => node.name.startsWith('exp'))
  return (...inputs) => {
    if (isFaulty) ${code}
    return gm.forward(...inputs)
  }
}, { module: import.meta.url })
`,
        'program.mjs': `import './backend.mjs'
import { compile, torch } from '${distUrl('index.js')}'
compile((x) => x.sin().exp().relu(), { backend: 'rejects_late' })(torch.ones([3]))
`,
      })
      folders.push(folder)
      const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '3' }
      expect(await runScript(folder, 'program.mjs', [], { env })).toMatchObject({ how: 'exit 1' })
      const launched = await runScript(folder, present(launcherIn(folder), 'a launcher'), ['minify'])
      expect(launched.output).toContain('Looking for errors all the same')
      const repro = present(fileNamed(folder, 'repro.mjs'), 'a repro')
      expect(readFileSync(repro, 'utf8').match(/= torch\.\w+/g)).toEqual(['= torch.exp'])
      const failing = await runScript(folder, repro)
      expect([failing.how, failing.output]).toEqual([
        'exit 1',
        expect.stringContaining('with rejects_late: RangeError: too late, after the call; with eager: passes'),
      ])
      expect(await runScript(folder, repro, ['--backend', 'eager'])).toMatchObject({ how: 'exit 0' })
    },
    240_000,
  )
})

describe('a history as a program', () => {
  it('is written by saveGraphRepro, and minified from there', async () => {
    const gm = symbolicTrace((x: Tensor) => [torch.exp(torch.sin(x))])
    const [first, second] = [torch.zeros([2]), torch.ones([2])]
    registerBackend('stale', later('exp', present(LATER['the result of the call before, once there were two'], 'a fault')))
    const options = { compilerName: 'stale', accuracy: true, earlier: [[first]] }
    store.write('/out/history.mjs', saveGraphRepro(gm, [second], options))
    expect((await runHere(store, '/out/history.mjs', ['--backend', 'stale'])).error).toBeInstanceOf(AccuracyError)
    const result = await minifyBackendFailure(gm, [second], {
      backend: 'stale',
      accuracy: 'accuracy',
      earlier: [[first]],
      isolate: false,
      print: () => {},
    })
    expect([operatorsOf(result.gm), result.earlier.length]).toEqual([['exp'], 1])
  })
})
