// The recorded programs under PyTorch's debugger (test/goldens/debug3/levels-live.json), done again: what is raised, what the program sees, which files are written. Where PyTorch
// misses a failure or makes one up, the right answer is in the table, with the id of a row of docs/differences-from-pytorch.md.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import { BackendCompilerFailed, config } from 'tensorfx/compile'
import { AccuracyError, MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import type { GraphModule } from 'tensorfx/fx'
import type { Backend } from '../../src/dynamo/index.ts'
import { root } from '../built/node.ts'
import { resetConfig } from './inProcess.ts'

interface GoldenTensor {
  readonly tensor: string
  readonly data: readonly unknown[]
}
interface Golden {
  readonly name: string
  readonly after: 'dynamo' | 'aot'
  readonly level: number
  readonly source: string
  readonly raises?: { readonly error: string; readonly inner?: { readonly error: string } }
  readonly see?: Readonly<Record<string, GoldenTensor | null>> | null
  readonly files: readonly string[]
  readonly process?: string
}
const goldens = (JSON.parse(readFileSync(join(root, 'test/goldens/debug3/levels-live.json'), 'utf8')) as { cases: readonly Golden[] }).cases

// ---- the helpers of the recorded sources ----

function det(...shape: readonly number[]): Tensor {
  const count = shape.reduce((n, size) => n * size, 1)
  return torch.tensor(Array.from({ length: count }, (_, i) => ((i * 5) % 13) / 8 - 0.75)).reshape(shape)
}

function fill(parameters: Iterable<unknown>): void {
  noGrad(() => {
    let k = 0
    for (const p of parameters) {
      if (!(p instanceof Tensor)) continue
      const data = Array.from({ length: p.numel }, (_, i) => ((i * 7 + 3 * k) % 11) / 8 - 0.625)
      p.copy_(torch.tensor(data).reshape(p.shape))
      k++
    }
  })
}

class Mlp extends nn.Module {
  readonly lin1 = new nn.Linear(3, 4)
  readonly lin2 = new nn.Linear(4, 2)
  constructor() {
    super()
    fill(this.parameters())
  }
  override forward(x: Tensor): Tensor {
    return this.lin2.call(torch.relu(this.lin1.call(x)))
  }
}

// ---- what backends do ----

type Run = (...inputs: readonly unknown[]) => unknown[]
type Change = (outputs: unknown[], inputs: readonly unknown[]) => unknown[]
const isBackward = (gm: GraphModule): boolean => gm.code.includes('tangents')

const changed =
  (change: Change, isHere: (gm: GraphModule) => boolean = () => true): Backend =>
  (gm) => {
    const run: Run = (...inputs) => gm.forward(...inputs) as unknown[]
    return isHere(gm) ? (...inputs) => change(run(...inputs), inputs) : run
  }
const first =
  (fn: (y: Tensor) => Tensor): Change =>
  ([y, ...rest]) => [fn(y as Tensor), ...rest]
const all =
  (fn: (y: Tensor) => Tensor): Change =>
  (outputs) =>
    outputs.map((y) => (y instanceof Tensor ? fn(y) : y))

const right: Backend = (gm) => gm
const throwing: Backend = () => {
  throw new RangeError('cannot compile')
}
const failing = changed(() => {
  throw new RangeError('no kernel')
})
const second = torch.tensor([1, 1000, 1])
const spoilsSecond = changed(first((y) => y.mul(second)))
const reuses: Backend = (gm) => {
  const buffer = torch.empty([3])
  return (...inputs) => [buffer.copy_((gm.forward(...inputs) as Tensor[])[0] as Tensor)]
}

// ---- programs ----

/** What a program computes, by the names of the recording. Parts that it never gets to are missing. */
type See = Record<string, Tensor>
type Program = (backend: Backend | string, see: See) => void

const mlp: Program = (backend, see) => {
  const m = new Mlp()
  const x = det(5, 3).requiresGrad_()
  const out = compile(m, { backend })(x)
  see['output'] = out
  out.sum().backward()
  see['input grad'] = x.grad as Tensor
  see['bias grad'] = m.lin2.bias?.grad as Tensor
}

const once =
  (f: (x: Tensor) => Tensor, make: () => Tensor): Program =>
  (backend, see) => {
    const x = make()
    see['output'] = compile(f, { backend })(x)
    see['input'] = x
  }

const twice =
  (by: number): Program =>
  (backend, see) => {
    const x = torch.tensor([1, 2, 3])
    const f = compile((t: Tensor) => t.mul(2).add(1), { backend })
    see['input'] = x
    see['output'] = f(x)
    see['second output'] = f(by === 0 ? x : x.add(by))
  }

const counter: Program = (backend, see) => {
  const n = torch.zeros([1])
  see['n'] = n
  see['output'] = compile(
    (x: Tensor) => {
      n.add_(1)
      return x.mul(2)
    },
    { backend },
  )(torch.tensor([1, 2]))
}

const batchNorm: Program = (backend, see) => {
  const [lin, norm] = [new nn.Linear(3, 4), new nn.BatchNorm1d(4)]
  const m = new nn.Sequential(lin, norm)
  fill(m.parameters())
  const bias = lin.bias as Tensor
  bias.grad = torch.ones([4])
  const buffers = Object.fromEntries(norm.namedBuffers())
  see['grad'] = bias.grad
  see['output'] = compile(m, { backend })(det(5, 3))
  const [mean, , count] = Object.values(buffers) as [Tensor, Tensor, Tensor]
  Object.assign(see, { mean, count })
}

const dropout =
  (size: number): Program =>
  (backend, see) => {
    torch.manualSeed(3)
    see['output'] = compile(new nn.Dropout(0.5), { backend })(torch.ones([size]))
    see['next random'] = torch.rand([1])
  }

const relu = once(
  (x) => torch.relu(x),
  () => det(4),
)
const reluMore = once(
  (x) => torch.relu(x).mul(2).add(1),
  () => det(4),
)
const log = (values: readonly number[]): Program =>
  once(
    (x) => torch.log(x),
    () => torch.tensor(values),
  )

interface Row {
  readonly program: Program
  readonly backend: Backend | string
  readonly forwardOnly?: boolean
  /** What is thrown here. Default: nothing. */
  readonly throws?: 'AccuracyError' | 'RangeError' | 'BackendCompilerFailed'
  /** The row of the differences, where PyTorch answers otherwise. */
  readonly difference?: 'debugger-misses' | 'debugger-invents' | 'debugger-writes-more'
  /** PyTorch misses it after this, and finds it after the other. */
  readonly missedAfter?: 'dynamo'
  /** Random numbers are others than PyTorch's. */
  readonly isRandom?: boolean
}

const accurate = 'AccuracyError'
const missed = { throws: accurate, difference: 'debugger-misses' } as const
const invented = { difference: 'debugger-invents' } as const
const backwardTimes = changed(
  all((g) => g.mul(1.5)),
  isBackward,
)
const forwardPlus = changed(
  first((y) => y.add(100)),
  (gm) => !isBackward(gm),
)
const everythingPlus = (isHere: (gm: GraphModule) => boolean): Backend =>
  changed(
    all((y) => y.add(100)),
    isHere,
  )
const isForward = (gm: GraphModule): boolean => !isBackward(gm)
const fills = changed((outputs, [x]) => {
  ;(x as Tensor).fill_(7)
  return outputs
})
const addsFirst: Backend =
  (gm) =>
  (...inputs: readonly Tensor[]) => {
    inputs[0]?.add_(1)
    return gm.forward(...inputs) as unknown[]
  }

const rows: Readonly<Record<string, Row>> = {
  'right backend': { program: mlp, backend: right },
  'backward wrong, backend returns a GraphModule': { program: mlp, backend: backwardTimes, throws: accurate },
  'backward wrong, backend returns gm.forward': { program: mlp, backend: backwardTimes, ...missed },
  'backward wrong, aot_autograd with a wrong backward compiler': { program: mlp, backend: backwardTimes, ...missed },
  'forward wrong by 100, backend returns a GraphModule': { program: mlp, backend: forwardPlus, throws: accurate },
  'forward wrong by 100, backend returns gm.forward': { program: mlp, backend: forwardPlus, ...missed },
  'forward wrong by 100, backend returns a function, forward only by config': {
    program: mlp,
    backend: forwardPlus,
    forwardOnly: true,
    throws: accurate,
  },
  'NaN beside a wrong element': { program: log([-1, 2, 3]), backend: spoilsSecond, ...missed },
  'no NaN, one wrong element': { program: log([1.5, 2, 3]), backend: spoilsSecond, throws: accurate },
  'infinity beside a wrong element': {
    program: once(
      (x) => torch.div(torch.ones([3]), x),
      () => torch.tensor([0, 2, 3]),
    ),
    backend: spoilsSecond,
    ...missed,
  },
  'values around 1e-6 computed as zero': {
    program: once(
      (x) => x.mul(1e-6),
      () => torch.tensor([-1, 2, 3]),
    ),
    backend: changed(first((y) => y.mul(0))),
    ...missed,
  },
  'backend overwrites its input, GraphModule': { program: twice(0), backend: fills, ...missed },
  'backend overwrites its input, function': { program: twice(0), backend: fills, ...missed },
  'backend overwrites its input before use, function': { program: twice(0), backend: addsFirst, ...missed },
  'backend reuses its output buffer': { program: twice(1), backend: reuses, ...missed },
  'counter in a closure, level 1': { program: counter, backend: 'eager', ...invented },
  'counter in a closure, level 2': { program: counter, backend: 'eager', ...invented },
  'counter in a closure, level 3': { program: counter, backend: 'eager', ...invented },
  'counter in a closure, level 4': { program: counter, backend: 'eager' },
  'counter in a closure, backend returns a GraphModule, level 2': { program: counter, backend: right },
  'counter in a closure, backend returns a GraphModule, level 3': { program: counter, backend: right },
  'counter in a closure, backend returns a GraphModule, level 4': { program: counter, backend: right },
  'BatchNorm, gradient before, level 1': { program: batchNorm, backend: 'eager', ...invented },
  'BatchNorm, gradient before, level 4': { program: batchNorm, backend: 'eager' },
  'BatchNorm, gradient before, backend returns a GraphModule, level 1': { program: batchNorm, backend: right },
  'BatchNorm, gradient before, backend returns a GraphModule, level 2': { program: batchNorm, backend: right },
  'BatchNorm, gradient before, backend returns a GraphModule, level 3': { program: batchNorm, backend: right },
  'dropout, level 2': { program: dropout(8), backend: 'eager', ...invented, isRandom: true },
  'dropout, level 4': { program: dropout(8), backend: 'eager', isRandom: true },
  'dropout, backend returns a GraphModule, level 1': { program: dropout(8), backend: right, isRandom: true },
  'dropout, backend returns a GraphModule, level 2': { program: dropout(8), backend: right, isRandom: true },
  'dropout, backend returns a GraphModule, level 4': { program: dropout(8), backend: right, isRandom: true },
  'dropout, output wrong by 50 percent, level 4': { program: dropout(64), backend: changed(first((y) => y.mul(1.5))), ...missed },
  'in-place write of the input, level 4': {
    program: once(
      (x) => x.add_(1).mul(2),
      () => torch.zeros([3]),
    ),
    backend: 'eager',
  },
  'integer output wrong': {
    program: once(
      (x) => x.argmax(),
      () => det(4),
    ),
    backend: changed(first((y) => y.add(1))),
    throws: accurate,
  },
  'compiled code throws at level 4': { program: mlp, backend: failing, throws: 'RangeError', difference: 'debugger-writes-more' },
  'compiler throws at level 4': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed', difference: 'debugger-writes-more' },
  'compiler throws, level 1': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed' },
  'compiler throws, level 2': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed' },
  'compiled code throws, level 1': { program: mlp, backend: failing, throws: 'RangeError' },
  'compiled code throws, level 2': { program: mlp, backend: failing, throws: 'RangeError' },
  'compiled code throws, level 3': { program: mlp, backend: failing, throws: 'RangeError' },
  'compiled code throws, level 4': { program: mlp, backend: failing, throws: 'RangeError', difference: 'debugger-writes-more' },
  'forward wrong, registered name relu_accuracy_error_TESTING_ONLY': { program: relu, backend: 'relu_accuracy_error_TESTING_ONLY', throws: accurate },
  'forward wrong': { program: mlp, backend: everythingPlus(isForward), throws: accurate },
  'backward wrong': { program: mlp, backend: everythingPlus(isBackward), throws: accurate },
  "forward wrong, the compiler's name is not inductor": { program: mlp, backend: everythingPlus(isForward), ...missed },
  'forward NaN beside wrong elements': { program: log([-1, 2, 3]), backend: spoilsSecond, ...missed },
  'inner compiler throws, level 1': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed' },
  'inner compiler throws, level 2': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed' },
  'inner compiler throws, level 3': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed', difference: 'debugger-writes-more' },
  'inner compiler throws, level 4': { program: mlp, backend: throwing, throws: 'BackendCompilerFailed', difference: 'debugger-writes-more' },
  'right program, eager': { program: mlp, backend: 'eager', ...invented },
  'right program, aot_eager': { program: mlp, backend: 'aot_eager' },
  'backward wrong, GraphModule': { program: mlp, backend: backwardTimes, throws: accurate },
  'backward wrong, function': { program: mlp, backend: backwardTimes, ...missed },
  'right program, inductor': { program: reluMore, backend: 'inductor', ...invented },
  "wrong relu by inductor's own test switch": {
    program: reluMore,
    backend: 'relu_accuracy_error_TESTING_ONLY',
    throws: accurate,
    missedAfter: 'dynamo',
  },
}

// ---- the test ----

const nodeStore = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  setLogSink(() => {})
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const classes = { AccuracyError, BackendCompilerFailed, RangeError }

function outcomeOf({ program, backend }: Row): { readonly see: Readonly<Record<string, unknown>>; readonly thrown: unknown } {
  const see: See = {}
  let thrown: unknown = null
  try {
    program(backend, see)
  } catch (error) {
    thrown = error
  }
  return { see: Object.fromEntries(Object.entries(see).map(([name, tensor]) => [name, tensor.detach().toArray()])), thrown }
}

const scripts = (): string[] => [...store.files.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)).filter((name) => name.endsWith('.mjs'))

/** The scripts that PyTorch writes, under our names. */
function expectedScripts({ files }: Golden): readonly string[] {
  const names = files.map((path) => path.slice(path.lastIndexOf('/') + 1)).filter((name) => name.endsWith('.py'))
  return names.map((name) => name.replace(/^(?:minified_)?\d+(?:_nodes)?\.py$/, 'N.py').replace('.py', '.mjs')).toSorted()
}

const flat = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]).flatMap(flat) : [value])

describe('programs under the levels (difference: debugger-misses) (difference: debugger-invents) (difference: debugger-writes-more)', () => {
  it('all of the recording are here', () => expect(new Set(goldens.map(({ name }) => name))).toEqual(new Set(Object.keys(rows))))

  it.each(goldens.map((golden) => [golden.name, golden.after, golden.level, golden] as const))(
    '%s, after %s, level %d',
    (name, after, level, golden) => {
      const row = rows[name]
      if (row === undefined) throw new Error(name)
      Object.assign(config, { reproAfter: after, reproLevel: level, reproForwardOnly: row.forwardOnly === true })
      const { see, thrown } = outcomeOf(row)
      if (row.throws === undefined) expect(thrown).toBe(null)
      else expect(thrown).toBeInstanceOf(classes[row.throws])
      const written = scripts()
        .map((file) => file.replace(/^\d+\.mjs$/, 'N.mjs'))
        .toSorted()
      const difference = row.missedAfter === after ? 'debugger-misses' : row.difference
      if (difference === undefined) {
        const inner = golden.raises?.inner?.error ?? golden.raises?.error
        if (golden.process === undefined) expect(inner === undefined).toBe(row.throws === undefined)
        expect(written).toEqual(expectedScripts(golden))
      } else if (difference === 'debugger-misses') {
        expect(expectedScripts(golden)).not.toContain('minifier_launcher.mjs')
        expect(written).toContain('minifier_launcher.mjs')
      } else if (difference === 'debugger-writes-more') expect([expectedScripts(golden), written]).toEqual([[], ['minifier_launcher.mjs']])
      else expect(written).toEqual(level === 3 ? ['minifier_launcher.mjs'] : [])
      config.reproAfter = null
      if (row.throws !== undefined) return
      expect(see).toEqual(outcomeOf(row).see)
      if (golden.see === undefined || golden.see === null || row.isRandom === true || difference !== undefined) return
      for (const [part, value] of Object.entries(golden.see))
        if (value !== null) flat(see[part]).forEach((x, i) => expect(Number(x), part).toBeCloseTo(Number(value.data[i]), 5))
    },
  )
})
