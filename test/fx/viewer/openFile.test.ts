// Files that pages open (TENSORFX_MUTANTS=3000 reads more mutants): they show the same as graphPage and the tensors that are read by tensorfx/interop; hostile ones are refused, or shown, and change nothing.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as front from 'tensorfx'
import { fx, nn, torch } from 'tensorfx'
import * as json from 'tensorfx/fx/json'
import { filePage, graphView } from 'tensorfx/fx/viewer'
import { ShapeProp } from 'tensorfx/fx/passes'
import * as interop from 'tensorfx/interop'
import { formats } from '../../../scripts/fuzz/files/formats.mjs'
import { mutantOf } from '../../../scripts/fuzz/files/judge.mjs'
import { storedZip } from '../../../scripts/fuzz/files/storedZip.mjs'
import { TensorfxError } from '../../../src/errors/index.ts'
import { openFile } from '../../../src/fx/viewer/open/openFile.ts'
import { tensorFacts } from '../../../src/fx/viewer/tensorFacts.ts'
import { isTensorItem } from '../../../src/fx/viewer/weights.ts'
import type { StoredTensor, WeightsView } from '../../../src/fx/viewer/weights.ts'
import type { GraphView } from '../../../src/fx/viewer/view.ts'
import { root } from '../../built/node.ts'

const MUTANTS = Number(process.env['TENSORFX_MUTANTS'] ?? 60)
const utf8 = new TextEncoder()
const golden = (name: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(join(root, 'test/goldens/weights', name)))
const bytesOf = (value: unknown): Uint8Array<ArrayBuffer> => utf8.encode(JSON.stringify(value))

async function weightsIn(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<WeightsView> {
  const opened = await openFile(name, bytes)
  if (!('weights' in opened)) throw new Error('a graph')
  return opened.weights
}
async function graphIn(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<GraphView> {
  const opened = await openFile(name, bytes)
  if (!('graph' in opened)) throw new Error('weights')
  return opened.graph
}
const tensorsOf = ({ items }: WeightsView): readonly StoredTensor[] => items.filter(isTensorItem)

class Net extends nn.Module {
  conv = new nn.Conv2d(3, 4, 3, { padding: 1 })
  norm = new nn.BatchNorm2d(4)
  scale = new nn.Parameter(torch.tensor([2, 3, 4, 5]).to('float32'))
  override forward(x: front.Tensor): front.Tensor {
    return torch.relu(this.norm(this.conv(x))).mul(this.scale.view([1, 4, 1, 1]))
  }
}
function traced(): fx.GraphModule {
  const gm = fx.symbolicTrace(new Net().eval())
  new ShapeProp(gm).propagate(torch.ones([1, 3, 8, 8]))
  return gm
}

describe('weights', () => {
  it.each(['dtypes.safetensors', 'dtypes.pt', 'encoder.pt'])(
    'of %s have the shapes, dtypes and statistics of the tensors that are read from it',
    async (name) => {
      const bytes = golden(name)
      const loaded = name.endsWith('.pt') ? await interop.loadTorchFile(bytes) : await interop.loadSafetensors(bytes)
      const shown = tensorsOf(await weightsIn(name, bytes))
      expect(shown.map(({ path }) => path.join('.')).toSorted()).toEqual([...loaded.keys()].toSorted())
      for (const { path, shape, dtype, statistics } of shown) {
        const tensor = loaded.get(path.join('.'))
        const facts = tensorFacts('', tensor, true)
        expect([path, shape], String(path)).toEqual([path, tensor?.shape])
        // int64 is shown rounded to numbers, for which tensors are not asked.
        if (tensor?.dtype === 'int64') continue
        if (dtype === tensor?.dtype) expect(statistics).toEqual(facts?.statistics)
        else expect([dtype, statistics?.histogram]).toEqual([expect.stringMatching(/^[A-Z]/), facts?.statistics?.histogram])
      }
    },
  )

  it('may be nested in a checkpoint, among numbers and texts', async () => {
    const text = (value: string): string => `X${String.fromCharCode(value.length, 0, 0, 0)}${value}`
    const storage = `(${text('storage')}ctorch\nFloatStorage\n${text('0')}${text('cpu')}K\x04tQ`
    const view = (size: string, stride: string): string => `ctorch._utils\n_rebuild_tensor_v2\n(${storage}K\x00(${size}t(${stride}t\x89}tR`
    const pickle = `\x80\x02}(${text('epoch')}K\x03${text('model')}}(${text('a.w')}${view('K\x02K\x02', 'K\x01K\x02')}${text('huge')}${view('J\xff\xff\xff\x7fJ\xff\xff\xff\x7f', 'K\x00K\x00')}u${text('tags')}](${text('x')}Neu.`
    const file = storedZip({
      'x/data.pkl': Uint8Array.from(pickle, (c) => c.charCodeAt(0)),
      'x/data/0': new Uint8Array(Float32Array.of(1, 2, 3, 6).buffer),
    })
    const { items } = await weightsIn('checkpoint.pt', new Uint8Array(file))
    expect(items.map((item) => [item.path.join('.'), isTensorItem(item) ? [...item.shape] : item.text])).toEqual([
      ['epoch', '3'],
      ['model.a.w', [2, 2]],
      ['model.huge', [2 ** 31 - 1, 2 ** 31 - 1]],
      ['tags.0', 'x'],
      ['tags.1', 'null'],
    ])
    const [, transposed, huge] = items
    // A tensor that repeats its storage beyond any size has no statistics: its values would never end.
    expect(transposed !== undefined && isTensorItem(transposed) ? transposed.statistics?.mean : null).toBe(3)
    expect(huge !== undefined && isTensorItem(huge) ? huge.statistics : 0).toBeNull()
  })
})

describe('graphs', () => {
  it('in JSON show what graphPage shows of them, without weights', async () => {
    const gm = traced()
    const shown = await graphIn('net.json', bytesOf(json.graphToJson(gm.graph)))
    const wanted = graphView(gm, 'net.json', null, { statistics: false })
    const facts = ({ nodes }: GraphView): unknown => nodes.map(({ type: _t, config: _c, tensors: _s, stack: _k, ...node }) => node)
    expect(facts(shown)).toEqual(facts(wanted))
    expect(shown.code).toEqual(wanted.code)
  })

  it('in safetensors show their layers and tensors too', async () => {
    const gm = traced()
    const { nodes } = await graphIn('net.safetensors', interop.saveGraphModule(gm))
    const wanted = graphView(gm, 'net.safetensors')
    for (const [i, node] of wanted.nodes.entries()) {
      const shown = nodes[i]
      expect([shown?.name, shown?.type, shown?.spec]).toEqual([node.name, node.type, node.spec])
      const tensors = (of: typeof node | undefined): unknown =>
        of?.tensors.map(({ name, shape, dtype, statistics }) => [name, shape, dtype, statistics]).toSorted()
      expect(tensors(shown)).toEqual(tensors(node))
    }
    expect(nodes.find(({ name }) => name === 'conv')?.config).toMatchObject({
      inChannels: '3',
      outChannels: '4',
      kernelSize: '[3, 3]',
      padding: '[1, 1]',
    })
  })

  it('may call functions that nothing here has', async () => {
    const graph = json.graphToJson(fx.symbolicTrace((x: front.Tensor) => torch.relu(x)).graph)
    const { nodes } = await graphIn(
      'other.json',
      bytesOf({ ...graph, nodes: graph.nodes.map((node) => (node.op === 'call_function' ? { ...node, target: 'their.op' } : node)) }),
    )
    expect(nodes.map(({ target }) => target)).toEqual(['x', 'their.op', 'output'])
  })
})

describe('files from anyone', () => {
  it('are refused with their name if they are of no known format', async () => {
    await expect(openFile('a.png', Uint8Array.of(0x89, 0x50))).rejects.toThrow(/'a\.png' is of no known format\. Known are the JSON of a graph/)
    await expect(openFile('a.pt', new Uint8Array())).rejects.toThrow(/'a\.pt' is empty/)
    await expect(openFile('a.json', utf8.encode('{"x": []}'))).rejects.toThrow(/'a\.json' is JSON, but not that of a graph/)
    await expect(filePage('x', 3 as never)).rejects.toThrow(/filePage: argument 'file' must be a Blob, or the bytes of a file as a Uint8Array, got 3/)
  })

  it('cannot name what every object has', async () => {
    for (const target of ['__proto__.x', 'constructor', 'a.toString'])
      for (const op of ['get_attr', 'call_module'])
        await expect(
          openFile('a.json', bytesOf({ version: 2, nodes: [{ op, name: 'n', target, args: [], kwargs: {} }] })),
          `${op} ${target}`,
        ).rejects.toThrow(/node 'n' refers to the attribute/)
  })

  it('may have markup in all texts, which the page has as text', async () => {
    const page = await filePage('</title><script>x', golden('encoder.pt'))
    expect(page).not.toContain('<script>x')
    expect(page).toContain('&lt;/title&gt;&lt;script&gt;x')
  })

  const kinds = ['safetensors', 'torch-file', 'graph-json', 'graphmodule'] as const
  it.each(kinds)('%s: mutants are shown, or refused by an error of tensorfx, and nothing is changed', async (kind) => {
    const seeds = formats[kind]?.seeds({ ...json, ...interop, ...front, fx }) ?? []
    const before = Reflect.ownKeys(Object.prototype)
    let accepted = 0
    for (let i = 0; i < MUTANTS; i++) {
      const bytes = new Uint8Array(mutantOf(seeds, kind, 5, i))
      try {
        expect((await filePage('mutant', bytes)).length).toBeGreaterThan(1000)
        accepted++
      } catch (error) {
        if (!(error instanceof TensorfxError)) throw new Error(`mutant ${i} of ${kind}`, { cause: error })
      }
    }
    expect(Reflect.ownKeys(Object.prototype)).toEqual(before)
    expect(accepted).toBeGreaterThan(0)
    expect(accepted).toBeLessThan(MUTANTS)
  })
})
