// What static graphs are compiled to: the code of the graph, the loops of each kernel and the program that calls them, as digests. Graphs for any sizes share lowering, scheduling and emission with them, and must not change
// what these give where sizes are numbers. Where code is meant to become another, TENSORFX_RECORD=1 records it anew (and with TENSORFX_RELAXED=0 for the other engine), for a
// reason that the commit says.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { compileFx } from 'tensorfx/inductor'
import type { Backend, CompileOptions } from 'tensorfx/compile'
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { processEngine } from '../../src/kernels/engine/engine.ts'

const file = new URL('../goldens/staticPrograms.json', import.meta.url)
const isRecording = process.env['TENSORFX_RECORD'] === '1'

/** By engine, whose schedules differ, and by program: a line for each graph, `kernels digest`. */
type Recorded = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded
const engine = processEngine()
const found: Record<string, readonly string[]> = {}

const F = nn.functional

/** Each calls what it compiles once. */
const programs: Readonly<Record<string, (options: CompileOptions) => unknown>> = {
  'a chain of pointwise operators and reductions': (options) =>
    compile((x: Tensor, w: Tensor) => {
      const y = x.mul(w).tanh().sub(x.mean(-1, true))
      return [y.softmax(-1), y.square().sum(0), y.amax(1)]
    }, options)(torch.ones([24, 40]), torch.ones([40])),
  'views, transposes and broadcasting': (options) =>
    compile(
      (x: Tensor) =>
        x
          .t()
          .exp()
          .reshape([4, 10, 24])
          .permute([1, 0, 2])
          .add(x.narrow(0, 0, 1).reshape([10, 4, 1]))
          .contiguous(),
      options,
    )(torch.ones([24, 40])),
  'ranges, cat, embedding and integers': (options) =>
    compile((x: Tensor, table: Tensor) => {
      const positions = torch.arange(6, { dtype: 'int64' }).add(1)
      return torch.cat([x, F.embedding(positions, table)], 0).mul(positions.sum().float())
    }, options)(torch.ones([3, 8]), torch.ones([9, 8])),
  'products with what follows them': (options) => {
    const model = new nn.Sequential(new nn.Linear(48, 96), new nn.GELU(), new nn.LayerNorm(96), new nn.Linear(96, 16), new nn.ReLU())
    return compile((x: Tensor) => noGrad(() => model.call(x).matmul(torch.ones([16, 5]))), options)(torch.ones([12, 48]))
  },
  'attention of one step with a cache': (options) =>
    compile((q: Tensor, k: Tensor, past: Tensor) => {
      const keys = torch.cat([past, k], 1)
      return [q.matmul(keys.transpose(1, 2)).mul(0.25).softmax(-1).matmul(keys), keys]
    }, options)(torch.ones([4, 1, 16]), torch.ones([4, 1, 16]), torch.ones([4, 9, 16])),
  'convolutions with batch norm': (options) => {
    const model = new nn.Sequential(new nn.Conv2d(3, 8, 3, { padding: 1 }), new nn.BatchNorm2d(8), new nn.ReLU(), new nn.MaxPool2d(2)).eval()
    return compile((x: Tensor) => noGrad(() => model.call(x)), options)(torch.ones([2, 3, 12, 12]))
  },
  'a gradient outside of the function': (options) => {
    const model = new nn.Sequential(new nn.Linear(20, 30), new nn.Tanh(), new nn.Linear(30, 4))
    const loss = compile((x: Tensor) => model.call(x).square().mean(), options)(torch.ones([7, 20]))
    return loss.backward()
  },
  'a step of training': (options) => {
    const model = new nn.Linear(20, 4)
    const optimizer = new optim.Adam(model.parameters(), { lr: 0.01 })
    return compile((x: Tensor, y: Tensor) => {
      optimizer.zeroGrad()
      F.crossEntropy(model.call(x), y).backward()
      optimizer.step()
    }, options)(torch.ones([7, 20]), torch.zeros([7], { dtype: 'int64' }))
  },
  'numbers that differ from call to call': (options) => {
    const f = compile((x: Tensor, scale: number) => x.mul(scale).add(1).sum(-1), options)
    f(torch.ones([5, 6]), 0.5)
    return f(torch.ones([5, 6]), 0.75)
  },
}

/** The number of kernels of each graph that a program compiles, and a digest of all that is printed of it. */
function compiledBy(program: (typeof programs)[string]): readonly string[] {
  const lines: string[] = []
  const backend: Backend = (gm, inputs) => {
    const code = compileFx(gm, inputs)
    // Graphs and kernels are numbered through the process.
    const text = [gm.code, code.source, ...code.kernels.map((kernel) => kernel.text)].join('\n').replaceAll(/compiled_(graph|fn)_\d+/g, 'compiled_$1')
    lines.push(`${code.kernels.length} ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`)
    return code
  }
  torch.manualSeed(1)
  program({ backend, dynamic: false })
  return lines
}

it.each(Object.entries(programs))('%s: static graphs are compiled to what they were', (name, program) => {
  const lines = compiledBy(program)
  found[name] = lines
  expect(lines).not.toEqual([])
  if (!isRecording) expect(lines, 'If this is meant, record it anew (TENSORFX_RECORD=1) and say why.').toEqual(recorded[engine]?.[name])
})

it('the digest tells one constant from another', () => {
  const [a, b] = [1.5, 2.5].map((factor) => compiledBy((options) => compile((x: Tensor) => x.mul(factor).exp(), options)(torch.ones([3]))))
  expect(a).not.toEqual(b)
  expect(compiledBy((options) => compile((x: Tensor) => x.mul(1.5).exp(), options)(torch.ones([3])))).toEqual(a)
})

afterAll(() => {
  if (isRecording) writeFileSync(file, `${JSON.stringify({ ...recorded, [engine]: found }, null, 1)}\n`)
})
