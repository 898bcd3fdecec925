// The declarations that users get: a strict program compiles against them, without types of Node, and members that are not for users are not in them.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { root } from './node.ts'

const work = mkdtempSync(join(tmpdir(), 'tensorfx-types-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))
mkdirSync(join(work, 'node_modules'))
symlinkSync(root, join(work, 'node_modules/tensorfx'))
writeFileSync(
  join(work, 'tsconfig.json'),
  JSON.stringify({
    compilerOptions: {
      target: 'ES2022',
      lib: ['ES2023', 'ESNext.Disposable', 'DOM'],
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
      types: [],
    },
    files: ['program.ts'],
  }),
)

/** The compiler's errors about a program. */
function errorsOf(program: string): string[] {
  writeFileSync(join(work, 'program.ts'), program)
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', work], { encoding: 'utf8', stdio: 'pipe' })
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout: string }
    return stdout.trim().split('\n')
  }
}

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
    return torch.relu(this.fc.call(x)).add(1)
  }
}
const net = new Net()
const optimizer = new optim.AdamW(net.parameters(), { lr: 0.01 })
const step = compile((x: Tensor, y: Tensor): Tensor => {
  optimizer.zeroGrad()
  const loss = torch.nn.functional.mseLoss(net.call(x), y)
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
export const results: readonly unknown[] = [dtype, Double, noGrad(() => gm.call(torch.ones([2, 4]))), torch.autograd.grad(net.fc.weight.sum(), [net.fc.weight])]
`
  expect(errorsOf(program)).toEqual([])
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

it.each(['storage', 'pending', 'captureSlot', 'captureStamp', 'viewBase', 'outputNr', 'contiguousLayout', 'realize'])(
  'x.%s is not declared',
  (member) => {
    const errors = errorsOf(`import { torch } from 'tensorfx'\nexport const member: unknown = torch.ones([2]).${member}\n`)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(`Property '${member}' does not exist on type 'Tensor'`)
  },
)

it('nothing that is marked as internal is declared', () => {
  const declarations = readdirSync(`${root}dist`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  expect(declarations.length).toBeGreaterThan(200)
  expect(declarations.filter((name) => readFileSync(`${root}dist/${name}`, 'utf8').includes('@internal'))).toEqual([])
})
