// The declarations that users get: a strict program compiles against them, without types of Node, and members that are not for users are not in them.
import { readFileSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { errorsOf as errorsOfAll } from './compiler.ts'
import { root } from './node.ts'

/** The compiler's errors about a program, but not about the declarations of the package, which tests of their own look at. */
const errorsOf = (program: string): string[] => errorsOfAll({ 'program.ts': program }, [], { skipLibCheck: true })

const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { readonly exports: Readonly<Record<string, unknown>> }
const entries = Object.keys(exports).filter((name) => name !== './package.json')

it('a strict program that uses every entry compiles, the libraries checked', () => {
  const imports = entries.map((name, i) => `import * as entry${i} from '${name.replace('.', 'tensorfx')}'`)
  const program = `${imports.join('\n')}
import { compile, fx, nn, noGrad, optim, torch } from 'tensorfx'
import type { DType, FunctionContext, Tensor } from 'tensorfx'
export const entries: readonly object[] = [${entries.map((_, i) => `entry${i}`).join(', ')}]

class Net extends nn.Module {
  fc: nn.Linear = new nn.Linear(4, 3)
  override forward(x: Tensor): Tensor {
    return torch.relu(this.fc(x)).add(1)
  }
}
const net = new Net()
const optimizer = new optim.AdamW(net.parameters(), { lr: 0.01 })
const step = compile((x: Tensor, y: Tensor): Tensor => {
  optimizer.zeroGrad()
  const loss = torch.nn.functional.mseLoss(net(x), y)
  loss.backward()
  optimizer.step()
  return loss.detach()
})
const dtype: DType = step(torch.ones([2, 4]), torch.zeros([2, 3])).dtype
const gm = fx.symbolicTrace(net)
for (const node of gm.graph.nodes) {
  if (node.op === 'call_function' && node.target === torch.relu) node.target = torch.tanh
  if (node.op === 'call_module') console.log(node.target.length)
}
gm.recompile()
class Double extends torch.autograd.Function {
  static override forward(ctx: FunctionContext, x: Tensor): Tensor {
    ctx.saveForBackward(x)
    return x.mul(2)
  }
  static override backward(_ctx: FunctionContext, grad: Tensor): Tensor {
    return grad.mul(2)
  }
}
const doubled: Tensor = Double.apply(torch.ones([2]))
// @ts-expect-error forward takes a tensor
Double.apply('2')
// @ts-expect-error forward gives one tensor
export const several: readonly Tensor[] = Double.apply(doubled)
export const results: readonly unknown[] = [dtype, doubled, noGrad(() => gm.call(torch.ones([2, 4]))), torch.autograd.grad(net.fc.weight.sum(), [net.fc.weight])]
`
  expect(errorsOfAll({ 'program.ts': program })).toEqual([])
})

it('the declarations hold without the options that only strict programs set', () => {
  const loose = {
    exactOptionalPropertyTypes: false,
    noUncheckedIndexedAccess: false,
    noPropertyAccessFromIndexSignature: false,
    noImplicitOverride: false,
  }
  const imports = entries.map((name, i) => `export * as entry${i} from '${name.replace('.', 'tensorfx')}'`)
  expect(errorsOfAll({ 'program.ts': imports.join('\n') }, [], loose)).toEqual([])
  expect(errorsOfAll({ 'program.ts': imports.join('\n') }, [], { ...loose, strict: false })).toEqual([])
})

// What `tsc --init` and the templates of bundlers choose. Types of `using` are of a later standard: each declaration that names one refers to them, since an entry may be used alone.
it('the declarations hold with the libraries of ES2022 alone', () => {
  const imports = entries.map((name, i) => `export * as entry${i} from '${name.replace('.', 'tensorfx')}'`)
  expect(errorsOfAll({ 'program.ts': imports.join('\n') }, [], { lib: ['ES2022', 'DOM', 'DOM.Iterable'] })).toEqual([])
  const declarations = readdirSync(`${root}dist`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  const using = declarations
    .map((name) => [name, readFileSync(`${root}dist/${name}`, 'utf8')] as const)
    .filter(([, code]) => /\bDisposable\b|Symbol\.(?:asyncD|d)ispose/.test(code))
  expect(using.length).toBeGreaterThan(0)
  expect(using.filter(([, code]) => !code.includes('/// <reference lib="esnext.disposable"')).map(([name]) => name)).toEqual([])
})

it('a strict program that writes a backend, a pass over nodes and operators compiles without a cast', () => {
  const program = `
import { compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import type { Backend } from 'tensorfx/compile'
import { call } from 'tensorfx/kernels'
import { opcheck } from 'tensorfx/library'

const asIs: Backend = (gm) => gm
const bound: Backend = (gm) => gm.forward
const counting: Backend = (gm, exampleInputs) => {
  console.log(exampleInputs.length)
  return (...inputs) => gm.forward(...inputs)
}
registerBackend('asIs', asIs)

/** How often each function, method and module is called. */
function calls(gm: fx.GraphModule): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const node of gm.graph.nodes) {
    let name: string
    switch (node.op) {
      case 'call_function':
        name = node.target.name
        break
      case 'call_method':
      case 'call_module':
      case 'get_attr':
        name = node.target
        break
      case 'placeholder':
      case 'output':
        continue
    }
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

const scaled = torch.library.customOp('mylib::scaled', {
  schema: '(Tensor x, float factor, *, float shift=0) -> (Tensor, Tensor)',
  forward: (x, factor, shift) => [x.mul(factor), x.add(shift)],
  fake: (x) => [torch.emptyLike(x), torch.emptyLike(x)],
  backward: ({ inputs: { factor }, needsInputGrad }, first, second) => ({ x: needsInputGrad.x ? first.mul(factor).add(second) : null }),
  module: 'file:///operators.js',
})
const leaky = torch.library.defineOp('mylib::leaky', {
  schema: '(Tensor x, Scalar slope=0.1) -> Tensor',
  pointwise: { promotion: 'promote', compute: (x, slope) => call('max', x, call('mul', x, slope)) },
  backward: ({ inputs: { x, slope } }, g) => ({ x: torch.where(x.gt(0), g, g.mul(slope)) }),
})
const fill = torch.library.customOp('mylib::fill', {
  schema: '(Tensor(a!) out) -> ()',
  forward: (out) => {
    out.fill_(1)
  },
})
const program = (x: Tensor): Tensor => {
  fill(x)
  const [first, second] = scaled(leaky(x, { slope: 0.5 }), 2, { shift: 1 })
  return first.add(second)
}
export const results: readonly unknown[] = [
  ...[asIs, bound, counting].map((backend) => compile(program, { backend })(torch.ones([2]))),
  calls(fx.symbolicTrace(program)),
  opcheck(scaled, [[torch.ones([2]), 2], [torch.ones([2]), 2, { shift: 3 }]]).test_schema,
  torch.ops['mylib']?.['scaled'],
]
// @ts-expect-error the factor is missing
export const mistake: unknown = scaled(torch.ones([2]))
`
  expect(errorsOf(program)).toEqual([])
})

const MODULES = `import { compile, fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

class Scale extends nn.Module {
  override name = 'scale'
  readonly weight = new nn.Parameter(torch.ones([2]))
  override forward(x: Tensor, options: { readonly bias?: number } = {}): Tensor {
    return x.mul(this.weight).add(options.bias ?? 0)
  }
}
class Pair<M extends nn.Module> extends nn.Module {
  override readonly length = 2
  readonly both: M
  constructor(both: M) {
    super()
    this.both = both
  }
  override forward(x: Tensor, times?: number): readonly [Tensor, number] {
    return [x, times ?? 1]
  }
}
const x = torch.ones([2])
const scale = new Scale()
const layers = new nn.ModuleList([scale])
`

it('modules are called without casts, with the types of their forward', () => {
  const program = `${MODULES}
export const a: Tensor = scale(x)
export const b: Tensor = scale(x, { bias: 1 })
export const c: readonly [Tensor, number] = new Pair(scale)(x, 2)
export const d: Tensor = new Pair(scale).both(x)
export const e: Tensor = new nn.Sequential(scale, new nn.ReLU())(x)
export const f: Tensor = layers.at(0)(x)
export const g: Tensor = fx.symbolicTrace(scale)(x, { bias: 2 })
export const h: Tensor = compile(scale)(x, { bias: 2 })
export const i: Tensor = compile(scale).module(x)
export const j: Tensor = scale.deepCopy()(scale.call(x))
export const k: string = scale.name
export const l: nn.Module = scale
export const m: (x: Tensor) => Tensor = scale
`
  expect(errorsOf(program)).toEqual([])
})

const REFUSED: Readonly<Record<string, string>> = {
  'scale()': 'Expected 1-2 arguments, but got 0',
  'scale(3)': "Argument of type 'number' is not assignable to parameter of type",
  'scale(x, { bias: "1" })': "Type 'string' is not assignable to type 'number'",
  'scale(x, { bais: 1 })': "'bais' does not exist in type",
  'scale(x, { bias: undefined })': "with 'exactOptionalPropertyTypes: true'",
  'scale(x, {}, 1)': 'Expected 1-2 arguments, but got 3',
  'scale(x).nothing': "Property 'nothing' does not exist on type",
  'fx.symbolicTrace(scale)(3)': "Argument of type 'number' is not assignable to parameter of type",
  'compile(scale)(3)': "Argument of type 'number' is not assignable to parameter of type",
  'layers(x)': 'Expected 0 arguments, but got 1',
}

it('wrong arguments of a module are refused', () => {
  const lines = Object.keys(REFUSED).map((expression, i) => `export const result${i}: unknown = ${expression}`)
  const errors = errorsOf(`${MODULES}${lines.join('\n')}\n`)
  const first = MODULES.split('\n').length
  for (const [i, [expression, message]] of Object.entries(REFUSED).entries()) {
    const error = errors.find((line) => line.includes(`program.ts(${first + i},`))
    expect(error, expression).toContain(message)
  }
})

it('members of tensors that are not for users are not declared', () => {
  const members = ['storage', 'pending', 'captureSlot', 'captureStamp', 'viewBase', 'outputNr', 'contiguousLayout', 'realize']
  const uses = members.map((member) => `export const ${member}: unknown = torch.ones([2]).${member}`)
  const errors = errorsOf(["import { torch } from 'tensorfx'", ...uses].join('\n'))
  expect(errors.map((text) => /Property '(\w+)' does not exist on type 'Tensor'/.exec(text)?.[1])).toEqual(members)
})

it('nothing that is marked as internal is declared', () => {
  const declarations = readdirSync(`${root}dist`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  expect(declarations.length).toBeGreaterThan(200)
  expect(declarations.filter((name) => readFileSync(`${root}dist/${name}`, 'utf8').includes('@internal'))).toEqual([])
})
