// tensorfx graph, view and diff: saved graphs as text and pages, and what differs between two.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FxGraphDrawer } from 'tensorfx/fx/passes'
import { symbolicTrace } from 'tensorfx/fx'
import { graphToJson } from 'tensorfx/fx/json'
import { saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { temporaryFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import { openerOf } from '../../src/cli/pages.ts'
import type { Result } from '../../src/cli/line.ts'
import { root } from '../built/node.ts'

const folder = temporaryFolder('tensorfx graphs ')
const at = (name: string): string => join(folder, name)
const notes: string[] = []
const run = async (...words: string[]): Promise<Result> => runTensorfx(words, { print: () => {}, note: (line) => void notes.push(line) })

class Net extends nn.Module {
  w: nn.Parameter
  body: nn.Sequential
  constructor(kernelSize: number) {
    super()
    this.w = new nn.Parameter(torch.ones([1]))
    this.body = new nn.Sequential(new nn.Conv2d(1, 2, kernelSize), new nn.ReLU())
  }
  override forward(x: Tensor): Tensor {
    return this.body.call(x.mul(this.w))
  }
}
const gm = symbolicTrace(new Net(3))

beforeAll(() => {
  writeFileSync(at('net.json'), JSON.stringify(graphToJson(gm.graph)))
  writeFileSync(at('net.safetensors'), saveGraphModule(gm))
  writeFileSync(at('net5.safetensors'), saveGraphModule(symbolicTrace(new Net(5))))
  writeFileSync(at('tanh.json'), JSON.stringify(graphToJson(symbolicTrace((x: Tensor) => torch.tanh(torch.relu(x).add(1))).graph)))
  writeFileSync(at('sin.json'), JSON.stringify(graphToJson(symbolicTrace((x: Tensor) => torch.sin(torch.relu(x).add(2))).graph)))
  writeFileSync(at('broken.json'), '{"nodes": [')
  writeFileSync(at('other.json'), '{"nodes": 3}')
  writeFileSync(at('cut.safetensors'), readFileSync(at('net.safetensors')).subarray(0, 50))
})

describe('tensorfx graph', () => {
  it.each(['net.json', 'net.safetensors'])('prints %s in each form', async (name) => {
    expect(await run('graph', at(name))).toMatchObject({ code: 0, text: String(gm.graph).trimEnd() })
    expect((await run('graph', at(name), '--text')).text).toBe(String(gm.graph).trimEnd())
    expect((await run('graph', at(name), '--table')).text).toBe(gm.graph.printTabular({ print: false }).trimEnd())
    expect((await run('graph', at(name), '--code')).text).toBe(gm.code.trimEnd())
    expect((await run('graph', at(name), '--html')).text).toMatch(new RegExp(`^<!doctype html>[^]*<title>${name}`, 'i'))
    const svg = (await run('graph', at(name), '--svg')).text
    expect(svg).toMatch(/^<svg[^]*<\/svg>$/)
    for (const box of new FxGraphDrawer(gm, name).getDotGraph().match(/%\w+/g) ?? []) expect(svg).toContain(box)
  })

  it('prints JSON with the graph and the text', async () => {
    const { text, code } = await run('graph', at('tanh.json'), '--code', '--json')
    const saved: unknown = JSON.parse(readFileSync(at('tanh.json'), 'utf8'))
    expect([code, JSON.parse(text)]).toEqual([
      0,
      { file: at('tanh.json'), form: 'code', text: expect.stringContaining('torch.tanh') as string, graph: saved },
    ])
  })
})

describe('tensorfx view', () => {
  it('writes the page beside the file, or elsewhere', async () => {
    expect(await run('view', at('net.safetensors'))).toMatchObject({ code: 0, text: `Wrote ${at('net.html')}: ${gm.graph.nodes.length} nodes` })
    expect(readFileSync(at('net.html'), 'utf8')).toBe(`${(await run('graph', at('net.safetensors'), '--html')).text}\n`)
    const { data } = await run('view', at('tanh.json'), '--out', at('elsewhere.html'), '--json')
    expect(data).toEqual({ file: at('tanh.json'), page: at('elsewhere.html'), nodes: 5 })
    expect([existsSync(at('elsewhere.html')), existsSync(at('tanh.html'))]).toEqual([true, false])
  })

  it('shows the tensors of a file of weights', async () => {
    writeFileSync(at('weights.safetensors'), writeSafetensors([['a.w', torch.ones([2, 3])]]))
    copyFileSync(join(root, 'test/goldens/weights/encoder.pt'), at('encoder.pt'))
    for (const [file, count] of [
      ['weights.safetensors', '1 tensor, 24 bytes'],
      ['encoder.pt', '30 tensors, 79.4 KiB'],
    ] as const) {
      const page = at(`${file}.html`)
      const { code, text, data } = await run('view', at(file), '--out', page, '--json')
      expect([code, JSON.parse(text), data]).toEqual([0, data, { file: at(file), page, weights: count }])
      expect(readFileSync(page, 'utf8')).toMatch(/<div id="tree" [^]*"weights":\{"name":/)
    }
    expect((await run('view', at('encoder.pt'), '--before', at('tanh.json'))).text).toMatch(
      /--before is for graphs; '.*encoder\.pt' has weights only/,
    )
  })

  it('shows what changed since another graph', async () => {
    await run('view', at('sin.json'), '--before', at('tanh.json'), '--out', at('diff.html'))
    expect(readFileSync(at('diff.html'), 'utf8')).toContain('<span class="added">1 added</span>')
  })

  it('shows the times of a profile as heat: of several graphs, those of the one that has these nodes', async () => {
    const costs = (...names: string[]): object => ({
      graph: 'g',
      totalTime: 1,
      nodes: Object.fromEntries(names.map((name) => [name, { calls: 1, time: 0.25, flops: null, bytes: null, kernel: null }])),
    })
    writeFileSync(at('profile.json'), JSON.stringify([costs('other'), costs('relu', 'tanh')]))
    expect((await run('view', at('tanh.json'), '--profile', at('profile.json'), '--out', at('hot.html'))).code).toBe(0)
    const page = readFileSync(at('hot.html'), 'utf8')
    expect([page.includes('"costs":{"graph":"g"'), page.includes('"tanh":{"calls":1'), page.includes('"other":{')]).toEqual([true, true, false])
    expect((await run('view', at('net.json'), '--profile', at('profile.json'), '--out', at('hot.html'))).text).toMatch(/says nothing of this graph/)
    expect((await run('view', at('net.json'), '--profile', at('absent.json'))).text).toMatch(/there is no file/)
  })

  it.runIf(process.platform === 'linux')('opens the page with the program of the desktop, or says that there is none', async () => {
    mkdirSync(at('bin'))
    writeFileSync(at('bin/xdg-open'), `#!/bin/sh\necho "$1" > '${at('opened')}'\n`)
    chmodSync(at('bin/xdg-open'), 0o755)
    try {
      vi.stubEnv('PATH', `${at('bin')}${delimiter}${process.env['PATH'] ?? ''}`)
      expect((await run('view', at('tanh.json'), '--open')).code).toBe(0)
      await vi.waitFor(() => expect(readFileSync(at('opened'), 'utf8').trim()).toBe(openerOf('linux', at('tanh.html'))[1]), { timeout: 10_000 })
      expect(notes.at(-1)).toBe(`opening ${at('tanh.html')}`)
      vi.stubEnv('PATH', at('absent'))
      expect(await run('view', at('tanh.json'), '--open')).toMatchObject({
        code: 2,
        text: expect.stringContaining('was written, but xdg-open cannot open it') as string,
      })
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('names the program of each platform, with the address of the file', () => {
    expect(openerOf('linux', '/a b.html')).toEqual(['xdg-open', 'file:///a%20b.html'])
    expect(openerOf('darwin', '/a.html')).toEqual(['open', 'file:///a.html'])
    expect(openerOf('win32', '/a.html')).toEqual(['rundll32', 'url.dll,FileProtocolHandler', 'file:///a.html'])
  })
})

describe('tensorfx diff', () => {
  it('lists nodes that were added, removed and changed, with exit code 1', async () => {
    const { text, code } = await run('diff', at('tanh.json'), at('sin.json'))
    expect(code).toBe(1)
    const lines = text.split('\n')
    expect(lines.toSorted()).toEqual(
      [
        '- %add = call_method[add](%relu, 1)',
        '+ %add = call_method[add](%relu, 2)',
        '+ %sin = call_function[torch.sin](%add)',
        '- %tanh = call_function[torch.tanh](%add)',
        '1 added, 1 removed, 1 changed',
      ].toSorted(),
    )
    const colored = await runTensorfx(['diff', at('tanh.json'), at('sin.json')], {
      print: () => {},
      note: () => {},
      terminal: { columns: 80, isColored: true },
    })
    expect(colored.text).toContain('\u001B[32m+ %sin = call_function[torch.sin](%add)\u001B[39m')
  })

  it('shows the configuration of a layer that changed', async () => {
    const { text, code } = await run('diff', at('net.safetensors'), at('net5.safetensors'))
    expect(code).toBe(1)
    expect(text).toMatch(/^- %body_0 = call_module\[body\.0\]\(%mul\) Conv2d\(.*kernelSize: \[3, 3\]/m)
    expect(text).toMatch(/^\+ %body_0 = call_module\[body\.0\]\(%mul\) Conv2d\(.*kernelSize: \[5, 5\]/m)
  })

  it('finds no difference between a graph and itself, with exit code 0, and prints JSON', async () => {
    expect(await run('diff', at('net.json'), at('net.json'))).toMatchObject({ code: 0, text: 'The graphs are the same.' })
    const { text, code } = await run('diff', at('tanh.json'), at('sin.json'), '--json')
    const data: unknown = JSON.parse(text)
    expect(code).toBe(1)
    expect(data).toMatchObject({ before: at('tanh.json'), after: at('sin.json') })
    expect(data).toHaveProperty(
      'changes',
      expect.arrayContaining([{ name: 'sin', change: 'added', before: null, after: 'call_function[torch.sin](%add)' }]),
    )
  })
})

it.each([
  [['graph'], /^usage: tensorfx graph FILE/],
  [['graph', 'absent.json'], /there is no file or folder 'absent.json'/],
  [['graph', at('broken.json')], /is not JSON/],
  [['graph', at('other.json')], /^tensorfx graph: /],
  [['graph', at('cut.safetensors')], /^tensorfx graph: /],
  [['graph', at('net.json'), '--code', '--svg'], /--code and --svg exclude each other/],
  [['graph', at('net.json'), '--tables'], /unknown option '--tables'\. Did you mean '--table'\?/],
  [['graph', at('net.json'), at('net.json')], /expected one saved graph, got 2/],
  [['view', at('broken.json')], /is not JSON/],
  [['view', at('net.json'), '--out', at('absent/x.html')], /x\.html cannot be written: ENOENT/],
  [['diff', at('net.json')], /expected two saved graphs, got 1/],
  [['diff', at('net.json'), at('broken.json')], /is not JSON/],
])('%j is refused with exit code 2', async (words, message) => {
  expect(await run(...words)).toMatchObject({ code: 2, text: expect.stringMatching(message) as string })
  if (words.length === 1) return
  const json = await run(...words, '--json')
  expect([json.code, JSON.parse(json.text)]).toEqual([2, { error: expect.any(String) as string }])
})

it.each(['graph', 'view', 'diff'])('%s has help', async (name) =>
  expect((await run(name, '--help')).text).toMatch(new RegExp(`^usage: tensorfx ${name} `)),
)
