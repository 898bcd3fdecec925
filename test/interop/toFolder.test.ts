// toFolder: the written folder runs in a process of its own, with nothing but tensorfx.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as tensorfx from 'tensorfx'
import { GraphModule, PH, _assert, symbolicTrace, wrap } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import * as interop from 'tensorfx/interop'
import { folderFiles, readSafetensors, toFolder, writeSafetensors } from 'tensorfx/interop'
import * as pytree from 'tensorfx/pytree'
import { bundledHome } from '../../scripts/bundled.mjs'
import { temporaryFolder } from '../helpers/folder.ts'

const folder = temporaryFolder('tensorfx-folder-')

class Inner extends nn.Module {
  scale = new nn.Parameter(torch.randn([4]))
  conv = new nn.Conv2d(1, 4, 3, { padding: 1 })
  override forward(x: Tensor): Tensor {
    return this.conv.call(x).mean([2, 3]).mul(this.scale)
  }
}
class Net extends nn.Module {
  inner = new Inner()
  layers = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 2))
  override forward(x: Tensor): Tensor {
    return torch.nn.functional.softmax(this.layers.call(this.inner.call(x)), { dim: 1 })
  }
}

describe('toFolder', () => {
  it('test_to_folder: writes a module that runs by itself and computes the same (difference: folder-of-code)', async () => {
    const gm = symbolicTrace(new Net())
    gm.eval()
    // What the graph does not refer to comes along.
    gm.addSubmodule('unused.linear', new nn.Linear(2, 2))
    gm.getSubmodule('unused').registerBuffer('buffer', torch.tensor([1, 2]))
    gm.registerBuffer('passing', torch.tensor([3]), { persistent: false })
    // A layer, and one of its parameters.
    gm.graph.insertingBefore(gm.graph.outputNode(), () => gm.graph.getAttr('inner.conv.bias'))
    gm.recompile()
    await toFolder(gm, folder, 'Net')
    const x = torch.randn([2, 1, 5, 5])
    writeFileSync(join(folder, 'input.safetensors'), writeSafetensors([['x', x]]))
    writeFileSync(
      join(folder, 'run.mjs'),
      `import { readFileSync, writeFileSync } from 'node:fs'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { Net, load } from './module.mjs'
const here = (name) => new URL(name, import.meta.url)
const net = new Net()
if (!((await load()) instanceof Net) || net.training) process.exit(3)
if (net.unused.buffer.toArray()[1] !== 2 || net.passing.item() !== 3 || net.unused.linear.weight.shape[0] !== 2) process.exit(4)
const { tensors } = readSafetensors(readFileSync(here('input.safetensors')))
writeFileSync(here('output.safetensors'), writeSafetensors([['y', net.call(tensors.get('x'))]]))
`,
    )
    // The folder finds the package as a user's would.
    execFileSync('mkdir', ['-p', join(folder, 'node_modules')])
    symlinkSync(bundledHome, join(folder, 'node_modules/tensorfx'))
    execFileSync(process.execPath, [join(folder, 'run.mjs')])
    const { tensors } = readSafetensors(readFileSync(join(folder, 'output.safetensors')))
    expect(torch.allclose(tensors.get('y') as Tensor, gm.call(x) as Tensor, { atol: 1e-6 })).toBe(true)
  })

  it('an instance has the saved parameters, or an error says what it needs', () => {
    const gm = symbolicTrace(new Net())
    const place = mkdtempSync(join(folder, 'instance-'))
    const files = folderFiles(gm, 'Net')
    for (const [name, data] of Object.entries(files)) writeFileSync(join(place, name), data)
    const say = (code: string): string =>
      execFileSync(process.execPath, ['--input-type=module', '-e', `import { Net, load } from './module.mjs'\n${code}`], {
        cwd: place,
        encoding: 'utf8',
      }).trim()
    const weight = "net.layers.getParameter('2.bias').toArray()"
    const want = JSON.stringify(gm.getParameter('layers.2.bias').toArray())
    expect(say(`for (const net of [new Net(), await load()]) console.log(JSON.stringify(${weight}))`)).toBe(`${want}\n${want}`)
    rmSync(join(place, 'state.safetensors'))
    const failing = 'try { new Net() } catch (error) { console.log(error.message) }'
    const [gone, nowhere] = say(`${failing}\nprocess.getBuiltinModule = undefined\n${failing}`).split('\n')
    expect(gone).toMatch(/^the code of a folder: state\.safetensors beside it could not be read: ENOENT/)
    expect(nowhere).toBe(
      'the code of a folder: there is no file system here to read state.safetensors from; give its bytes: new Model(bytes), or load(bytes).',
    )
  })

  it('writes code that a person would have written', () => {
    const { 'module.mjs': code } = folderFiles(symbolicTrace(new Net()), 'Net')
    expect(code).toContain('export class Net extends nn.Module {')
    expect(code).toContain('conv: new nn.Conv2d(1, 4, [3, 3], { stride: [1, 1], padding: [1, 1], dilation: [1, 1], groups: 1, bias: true })')
    expect(code).toContain('let inner_conv = this.inner.conv.call(x); x = null')
  })

  it('keeps parameters of layers frozen', () => {
    const model = new nn.Sequential(new nn.Linear(2, 2), new nn.Linear(2, 2))
    expect(folderFiles(symbolicTrace(model))['module.mjs']).not.toContain('frozen')
    for (const parameter of new Set([...model.getSubmodule('0').parameters(), ...[...model.parameters()].slice(3)])) parameter.requiresGrad = false
    const code = folderFiles(symbolicTrace(model))['module.mjs']
    expect(code).toContain("import { Attributes, frozen, loadState, readState, registered } from 'tensorfx/interop'")
    expect(code).toContain("frozen(new nn.Linear(2, 2, { bias: true }), ['weight', 'bias'])")
    expect(code).toContain("frozen(new nn.Linear(2, 2, { bias: true }), ['bias'])")
    const layer = interop.frozen(new nn.Linear(2, 2), ['bias'])
    expect([layer.weight.requiresGrad, layer.bias?.requiresGrad]).toEqual([true, false])
    expect(() => interop.frozen(layer, ['gain'])).toThrow("'gain' is not a parameter of Linear")
  })

  it('leaves no half-written folder: a new one appears whole, and in an existing one other files stay', async () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)))
    const parent = join(folder, 'whole')
    await toFolder(gm, join(parent, 'new/'))
    expect(readdirSync(parent)).toEqual(['new'])
    writeFileSync(join(parent, 'new', 'notes.txt'), 'mine')
    writeFileSync(join(parent, 'new', 'module.mjs'), 'old')
    await toFolder(gm, join(parent, 'new'))
    expect(readdirSync(parent)).toEqual(['new'])
    expect(readdirSync(join(parent, 'new')).sort()).toEqual(['module.mjs', 'notes.txt', 'state.safetensors'])
    expect(readFileSync(join(parent, 'new', 'module.mjs'), 'utf8')).toContain('class FxModule')
    // Where the folder cannot be, nothing of it stays.
    await expect(toFolder(gm, join(parent, 'new', 'notes.txt'))).rejects.toThrow('EEXIST')
    expect(readdirSync(join(parent, 'new')).sort()).toEqual(['module.mjs', 'notes.txt', 'state.safetensors'])
  })

  it('takes GraphModules inside along', () => {
    const inner = symbolicTrace(new nn.Linear(2, 2))
    const gm = new GraphModule({ inner }, symbolicTrace((x) => x).graph)
    gm.addSubmodule('inner', inner)
    const [x] = gm.graph.findNodes({ op: 'placeholder' })
    gm.graph.outputNode().args = [gm.graph.insertingBefore(gm.graph.outputNode(), () => gm.graph.callModule('inner', [x ?? null]))]
    gm.recompile()
    expect(folderFiles(gm)['module.mjs']).toContain('this.inner = new (class extends nn.Module {')
  })

  it('keeps options and nested values, and functions in namespaces, also where graphs inside use the same names', async () => {
    const sum = wrap((x: Tensor, y: Tensor) => x.add(y), { name: 'test.toFolder.sum' })
    const twice = wrap((x: Tensor) => x.mul(2), { name: 'test.toFolder.twice' })
    const inner = symbolicTrace((x: Tensor, { by = 3 } = {}) => twice(x).mul(by))
    const outer = symbolicTrace((d: { a: Tensor; b: Tensor }, { scale = 2 } = {}) => ({ out: sum(d.a, d.b).mul(scale) }), {
      concreteArgs: { d: { a: PH, b: PH } },
    })
    outer.addSubmodule('inner', inner)
    const add = outer.graph.findNodes({ op: 'call_function', target: sum })[0] as Node
    const call = outer.graph.insertingAfter(add, () => outer.graph.callModule('inner', [add], { by: 5 }))
    add.replaceAllUsesWith(call, (user) => user !== call)
    outer.recompile()
    const [a, b] = [torch.tensor([1]), torch.tensor([2])]
    const want = (outer.call({ a, b }, { scale: 7 }) as { out: Tensor }).out.toArray()
    expect(want).toEqual([210])
    const { 'module.mjs': code, 'state.safetensors': state } = folderFiles(outer, 'Nested')
    writeFileSync(join(folder, 'state.safetensors'), state)
    // The functions are found by their names in the process that imports the file: here that is this one.
    const file = join(folder, 'nested.mjs')
    const room = (name: string): string => `globalThis.toFolderTest['${name}']`
    Object.assign(globalThis, { toFolderTest: { tensorfx, interop, pytree } })
    writeFileSync(
      file,
      code
        .replace("import { fx, nn, operator, torch } from 'tensorfx'", `const { fx, nn, operator, torch } = ${room('tensorfx')}`)
        .replace(
          "import { Attributes, loadState, readState, registered } from 'tensorfx/interop'",
          `const { Attributes, loadState, readState, registered } = ${room('interop')}`,
        )
        .replace("import * as pytree from 'tensorfx/pytree'", `const pytree = ${room('pytree')}`),
    )
    const { Nested } = (await import(/* @vite-ignore */ file)) as { Nested: new () => nn.Module }
    const run = new Nested().call as unknown as (...inputs: readonly unknown[]) => { out: Tensor }
    expect(run.call(new Nested(), { a, b }, { scale: 7 }).out.toArray()).toEqual(want)
    expect(code.match(/^const test = /gm)).toHaveLength(1)
  })

  it('calls functions under torch that torch itself does not have by their registered names', () => {
    const custom = wrap((x: Tensor) => x, { name: 'torch.ops.test_to_folder.custom' })
    const gm = symbolicTrace(
      (x: Tensor, flag = true) => {
        _assert(flag, 'flag')
        return custom(torch.relu(x))
      },
      { concreteArgs: { flag: true } },
    )
    const { 'module.mjs': code } = folderFiles(gm)
    expect(code).toContain("registered('torch.ops.test_to_folder.custom')(relu)")
    expect(code).toContain("registered('torch._assert')(")
    expect(code).toContain('torch.relu(')
  })

  it('refuses what code cannot say', () => {
    const gm = symbolicTrace(new Net())
    const named = wrap((x: Tensor) => x, { name: 'nn' })
    const taken = symbolicTrace((x: Tensor) => named(x))
    for (const node of taken.graph.findNodes({ op: 'call_function', target: named })) node.rename('other')
    taken.recompile()
    expect(() => folderFiles(taken)).toThrow("the code calls a function 'nn', a name that the file itself uses")
    const plain = symbolicTrace((x: Tensor) => x)
    plain.graph.outputNode().args = [plain.graph.insertingBefore(plain.graph.outputNode(), () => plain.graph.callFunction(() => 1, []))]
    expect(() => folderFiles(plain)).toThrow('anonymous function')
    expect(() => folderFiles(gm, 'no name')).toThrow("'no name' is not a valid name for a class")
    expect(() => folderFiles({} as GraphModule)).toThrow('the first argument must be a GraphModule')
  })
})
