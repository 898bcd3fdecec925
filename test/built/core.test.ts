// tensorfx/core on the built package: models that `tensorfx` saves compute the same numbers there, and what is not loaded names its import.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { describe, expect, it } from 'vitest'
import { build } from 'esbuild'
import { temporaryFolder } from '../helpers/folder.ts'
import { bundledHome } from '../../scripts/bundled.mjs'
import { samples } from '../helpers/models.ts'
import { node, root } from './node.ts'

const folder = temporaryFolder('tensorfx-core-')

const manifest: { readonly exports: Readonly<Record<string, unknown>>; readonly peerDependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(`${root}package.json`, 'utf8'),
)

/** Saves the graph of a model and its inputs. */
function save(name: string, gm: fx.GraphModule, inputs: readonly Tensor[]): fx.GraphModule {
  writeFileSync(join(folder, `${name}.model`), saveGraphModule(gm))
  writeFileSync(join(folder, `${name}.inputs`), writeSafetensors(inputs.map((x, i): [string, Tensor] => [String(i), x])))
  return gm
}

/** What a program prints in which `model` is the saved model and `inputs` are its inputs. */
const run = (name: string, code: string, imports = ''): string =>
  node(
    `
    ${imports}
    import { loadModel, readSafetensors, tensor } from 'tensorfx/core'
    import { readFileSync } from 'node:fs'
    const load = (options) => loadModel(new Uint8Array(readFileSync(${JSON.stringify(join(folder, `${name}.model`))})), options)
    const inputs = [...readSafetensors(new Uint8Array(readFileSync(${JSON.stringify(join(folder, `${name}.inputs`))}))).tensors.values()]
    const failure = (fn) => { try { fn() } catch (error) { return error.name + ': ' + error.message } return 'no error' }
    ${code}`,
    { cwd: bundledHome },
  )

const printed = 'console.log(JSON.stringify([load()(...inputs)].flat().map((y) => [y.shape, y.dtype, y.toArray()])))'
const expected = (result: Tensor | readonly Tensor[]): unknown => [result].flat().map((y) => [y.shape, y.dtype, y.toArray()])

/** What a model uses beyond core. */
const imports: Readonly<Record<string, string>> = { mymodule: "import 'tensorfx/ops/statistics'" }

describe('a saved model computes with tensorfx/core what it does with tensorfx', () => {
  it.each(Object.entries(samples))('%s', (name, { make, inputs }) => {
    const xs = inputs()
    const gm = save(name, fx.symbolicTrace(make()), xs)
    expect(JSON.parse(run(name, printed, imports[name]))).toEqual(JSON.parse(JSON.stringify(expected(torch.noGrad(() => gm(...xs))))))
  })

  /** Layers and forms that the samples lack. */
  class Mixed extends nn.Module {
    embed = new nn.Embedding(11, 8)
    attention = new nn.MultiheadAttention(8, 2, { batchFirst: true })
    norm = new nn.GroupNorm(5, 5)
    scale = new nn.Parameter(torch.arange(8).float().div(8))
    conv = new nn.Conv1d(5, 4, 3, { padding: 'same' })
    override forward(tokens: Tensor): Tensor {
      const x = this.embed(tokens)
      const [y] = this.attention(x, x, x)
      const z = this.conv(this.norm(x.add(y).mul(this.scale)))
      return torch.cat([z.narrow(1, 0, 2).sub_(1), torch.nn.functional.gelu(z.narrow(1, 2, 2))], 1).getitem([0, { start: 1, stop: null, step: 2 }])
    }
  }
  it('embeddings, attention, parameters of its own, in-place forms and parts of tensors', () => {
    torch.manualSeed(3)
    const xs = [torch.tensor([[1, 5, 9, 0, 3]]).long()]
    const gm = save('mixed', fx.symbolicTrace(new Mixed().eval()), xs)
    expect(JSON.parse(run('mixed', printed))).toEqual(JSON.parse(JSON.stringify(expected(torch.noGrad(() => gm(...xs))))))
  })
})

it('layers that core does not have compute the same, if the page imports them', () => {
  class Recurrent extends nn.Module {
    lstm = new nn.LSTM(3, 4, { numLayers: 2, bidirectional: true, batchFirst: true })
    gru = new nn.GRU(8, 2, { batchFirst: true })
    head = new nn.Linear(2, 2)
    override forward(x: Tensor): Tensor {
      return this.head(this.gru(this.lstm(x)[0])[0])
    }
  }
  const xs = [torch.randn([2, 5, 3])]
  const gm = save('recurrent', fx.symbolicTrace(new Recurrent()), xs)
  const result = run('recurrent', printed.replace('load()', 'load({ layers: { LSTM, GRU } })'), "import { GRU, LSTM } from 'tensorfx/nn'")
  expect(JSON.parse(result)).toEqual(JSON.parse(JSON.stringify(expected(torch.noGrad(() => gm(...xs))))))
})

describe('what is not loaded', () => {
  const x = torch.tensor([
    [4, 1],
    [1, 3],
  ])
  it('is named with its import, and works with it: an operator', () => {
    save(
      'cholesky',
      fx.symbolicTrace((a: Tensor) => torch.linalg.cholesky(a)),
      [x],
    )
    expect(run('cholesky', 'console.log(failure(load))')).toBe(
      "ArgumentError: loadModel: unknown function 'torch.linalg.cholesky' at node 'cholesky'; it is among the operators of 'linalg': write import 'tensorfx/ops/linalg'.",
    )
    expect(run('cholesky', 'console.log(load()(...inputs).getitem([0, 0]).item())', "import 'tensorfx/ops/linalg'")).toBe('2')
  })
  it('a method of tensors', () => {
    expect(run('cholesky', 'console.log(failure(() => tensor([[2]]).det()))')).toContain("write import 'tensorfx/ops/linalg'")
    expect(run('cholesky', 'console.log(failure(() => tensor([2]).sum().backward()))')).toContain("write import 'tensorfx'")
  })
  it('a layer', () => {
    save('instance', fx.symbolicTrace(new nn.Sequential(new nn.InstanceNorm1d(2))), [x.unsqueeze(0)])
    expect(run('instance', 'console.log(failure(load))')).toContain(
      "a layer of class 'InstanceNorm1d', which is not among the layers here; write import { InstanceNorm1d } from 'tensorfx/nn' and pass { layers: { InstanceNorm1d } }.",
    )
    expect(
      run('instance', 'console.log(load({ layers: { InstanceNorm1d } })(...inputs).shape.join())', "import { InstanceNorm1d } from 'tensorfx/nn'"),
    ).toBe('1,2,2')
  })
})

describe('a bundle works where modules have no folder, as in inline scripts, blobs and data addresses', () => {
  /** Bundles a program and runs it from a data address: what it prints. */
  async function inlined(program: string): Promise<string> {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: root, loader: 'js' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      external: Object.keys(manifest.peerDependencies),
      write: false,
      tsconfigRaw: {},
    })
    const file = join(folder, 'bundle.js')
    writeFileSync(file, outputFiles[0]?.contents ?? '')
    return node(`import { readFileSync } from 'node:fs'
      await import('data:text/javascript;base64,' + readFileSync(${JSON.stringify(file)}).toString('base64'))`)
  }

  it('of tensorfx/core', async () => {
    expect(await inlined(`import { tensor } from 'tensorfx/core'\nconsole.log(tensor([1, 2]).add(1).sum().item())`)).toBe('5')
  })

  it('of every entry; what needs a script of its own says so when it is asked for', async () => {
    // tensorfx/register is a hook of Node's loader, and tensorfx/debug/worker is such a script.
    const entries = Object.keys(manifest.exports).filter((entry) => !/\/(?:register|worker|package\.json|lint-rules)$/.test(entry))
    const printed = await inlined(`
      ${entries.map((entry, i) => `import * as entry${i} from 'tensorfx${entry.slice(1)}'`).join('\n')}
      import { childEntry } from 'tensorfx/debug'
      import { runRanks } from 'tensorfx/distributed'
      console.log([${entries.map((_, i) => `entry${i}`).join(', ')}].length)
      const failure = (error) => console.log(error.name + ': ' + error.message)
      await runRanks(2, 'data:text/javascript,').catch(failure)
      try { childEntry.url } catch (error) { failure(error) }`)
    const refused = expect.stringMatching(
      /^UnsupportedError: The script of a worker cannot be found: .* Load it from a file or a server to use workers\.$/,
    )
    expect(printed.split('\n')).toEqual([String(entries.length), refused, refused])
  })
})

it('shares its classes and its operators with tensorfx, whichever comes first', () => {
  const check = `
    const { torch } = await import('tensorfx')
    const { tensor, Tensor, loadModel } = await import('tensorfx/core')
    await import('tensorfx/ops/linalg')
    const { allOps } = await import('tensorfx/ops')
    const names = allOps().map((op) => op.qualname)
    const x = torch.tensor([3], { requiresGrad: true })
    x.mul(tensor([2])).sum().backward()
    console.log(x instanceof Tensor, new Set(names).size === names.length, x.grad.item(), torch.linalg.det(tensor([[2]])).item())`
  expect(node(check)).toBe('true true 2 2')
  expect(node(`await import('tensorfx/core')\n${check}`)).toBe('true true 2 2')
})
