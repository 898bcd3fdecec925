// Code for reading: types, module paths, colours, and the map to the user's program.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import type { SourceMapPayload } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, PH, symbolicTrace } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import { removeFolder } from '../helpers/folder.ts'

/** What TypeScript says of a program; '' when it is content. */
function complaints(code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-types-'))
  try {
    const file = join(folder, 'program.ts')
    writeFileSync(file, code)
    const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
    const flags = ['--noEmit', '--strict', '--ignoreConfig', '--target', 'es2022', '--lib', 'es2023', '--types', '', file]
    execFileSync(process.execPath, [tsc, ...flags], { encoding: 'utf8' })
    return ''
  } catch (error) {
    return (error as { stdout: string }).stdout
  } finally {
    removeFolder(folder)
  }
}

const DECLARATIONS = `
interface Tensor { neg(): Tensor; add(other: Tensor | number): Tensor; clamp(options: { min: number }): Tensor; shape: number[] }
declare const torch: { relu(x: Tensor): Tensor; sigmoid(x: Tensor): Tensor; cat(xs: Tensor[]): Tensor }
declare const pytree: any, inSpec: any, outSpec: any
`

class Block extends nn.Module {
  readonly fc = new nn.Linear(3, 3)
  override forward(x: Tensor): Tensor {
    return torch.relu(this.fc.call(x)).add(1)
  }
}
class Net extends nn.Module {
  readonly block = new Block()
  override forward(x: Tensor): Tensor {
    return this.block.call(torch.sigmoid(x)).neg()
  }
}

const noted = (): GraphModule => {
  const gm = symbolicTrace(new Net())
  new ShapeProp(gm).propagate(torch.rand([2, 3]))
  return gm
}
const readable = (gm: GraphModule, options: object): string => gm.printReadable({ print: false, ...options })

afterEach(() => vi.unstubAllEnvs())

describe('types', () => {
  const program = (x: Tensor, y = 2, z: Tensor | null = null): Tensor => {
    void z
    const shifted = torch.relu(x).add(y)
    return torch.cat([shifted, x, shifted.clamp({ min: 0 })])
  }
  function typed(): Graph {
    const { graph } = symbolicTrace(program)
    const [x, , z] = graph.findNodes({ op: 'placeholder' })
    if (x !== undefined) x.type = 'torch.Tensor'
    if (z !== undefined) z.type = 'torch.Tensor'
    for (const node of graph.nodes) if (node.op.startsWith('call')) node.type = 'Tensor'
    graph.outputNode().type = 'torch.Tensor'
    return graph
  }

  it('are TypeScript’s annotations, with which the code compiles', () => {
    const { source } = typed().generateCode({ types: 'typescript' })
    const names = [...source.matchAll(/function forward\((\w+): Tensor, (\w+): number = 2, (\w+): Tensor \| null = null\): Tensor \{/g)]
    expect(names).toHaveLength(1)
    expect(source).toContain('let relu: Tensor = torch.relu(')
    expect(source).toContain('relu = ')
    expect(source).toMatch(/ = null!$/m)
    expect(complaints(DECLARATIONS + source)).toBe('')
    // The types are really checked.
    expect(complaints(DECLARATIONS + source.replace(': number = 2', ': string = 2'))).toContain("Type 'number' is not assignable to type 'string'")
  })

  it('are a comment for editors', () => {
    const { source } = typed().generateCode({ types: 'jsdoc' })
    expect(
      source
        .replaceAll(/\bx\d\b/g, 'x')
        .split('\n')
        .slice(0, 7),
    ).toEqual([
      '/**',
      ' * @param {Tensor} x',
      ' * @param {number} [y=2]',
      ' * @param {Tensor | null} [z=null]',
      ' * @returns {Tensor}',
      ' */',
      'function forward(x, y = 2, z = null) {',
    ])
    expect(source).not.toContain(': Tensor')
  })

  it('follow from the notes on values, and do not stand in code that runs', () => {
    const gm = noted()
    expect(readable(gm, { types: 'typescript' })).toMatch(/forward\(this: any, \w+: Tensor \/\* f32\[2, 3\] \*\/\): Tensor \{/)
    expect(complaints(DECLARATIONS + gm.graph.generateCode({ types: 'typescript' }).source)).toBe('')
    expect(gm.code).not.toContain('Tensor')
    expect(symbolicTrace((a: unknown, ...b: unknown[]) => [a, b[0]]).graph.generateCode({ types: 'typescript' }).source).toContain(
      '(a: any, ..._b: any[])',
    )
  })

  it('of PyTorch are written as TypeScript writes them', () => {
    const graph = new Graph()
    const types = {
      a: 'typing.List[typing.Optional[torch.Tensor]]',
      b: 'Tuple[int, float]',
      c: 'Tuple[str, ...]',
      d: 'Dict[str, Union[bool, None]]',
      e: 'int | Tensor[]',
      f: 'Tuple[()]',
      g: 'Any',
      h: 'Record<string, Tensor>',
    }
    for (const [name, type] of Object.entries(types)) graph.placeholder(name, type)
    const { source } = graph.generateCode({ types: 'typescript' })
    expect(source.split('\n')[0]).toBe(
      'function forward(a: (Tensor | null)[], b: [number, number], c: string[], d: Record<string, boolean | null>, e: number | Tensor[], f: [], g: any, h: Record<string, Tensor>) {',
    )
  })

  it('of options stand behind their pattern, and nested values have none', () => {
    const gm = symbolicTrace((x: Tensor, d: { k: Tensor[] }, { scale = 2 } = {}) => x.add((d.k[0] as Tensor).add(scale)), {
      concreteArgs: { d: { k: [PH] } },
    })
    const [x] = gm.graph.findNodes({ op: 'placeholder' })
    if (x !== undefined) x.type = 'Tensor'
    const { source } = gm.graph.generateCode({ types: 'typescript' })
    expect(source).toMatch(/^function forward\(\w+: Tensor, d: any, \{ scale = 2 \}: \{ scale\?: number \} = \{\}\) \{\n/)
    expect(complaints(DECLARATIONS + source)).toBe('')
    expect(gm.graph.generateCode({ types: 'jsdoc' }).source).toContain(' * @param {{ scale?: number }} [options]\n')
  })
})

describe('readable code', () => {
  it('names the module of each part when asked for', () => {
    const lines = readable(noted(), { includeModule: true })
      .split('\n')
      .filter((line) => !line.includes('// File:'))
      .map((line) => line.trim().replace(/ {2}\/\/ f32.*/, ''))
    expect(lines.slice(2, -2)).toEqual([
      expect.stringMatching(/^let sigmoid/),
      '// Module: block.fc (Linear)',
      expect.stringMatching(/^let block_fc/),
      '// Module: block (Block)',
      expect.stringMatching(/^let relu/),
      expect.stringMatching(/^let add/),
      expect.stringMatching(/^const neg/),
      expect.stringMatching(/^return neg/),
    ])
    expect(readable(noted(), {})).not.toContain('Module:')
  })

  it('has coloured comments when asked for, and is the same text without', () => {
    const gm = noted()
    const coloured = readable(gm, { colored: true })
    expect(coloured).toContain('\u001b[2;32m// f32[2, 3]\u001b[0m')
    expect(coloured).toContain('\u001b[2m// File: ')
    // oxlint-disable-next-line no-control-regex -- colours are control characters
    expect(coloured.replaceAll(/\u001b\[[\d;]*m/g, '')).toBe(readable(gm, {}))
  })

  it('shows strides and devices when the environment says so, unless told otherwise', () => {
    const gm = noted()
    for (const node of gm.graph.nodes) node.meta['val'] = { ...(node.meta['tensor_meta'] as object), device: 'cpu' }
    expect(readable(gm, {})).not.toContain('[3, 1]')
    vi.stubEnv('TENSORFX_FX_GRAPH_SHOW_STRIDE', '1')
    expect(readable(gm, {})).toContain('f32[2, 3][3, 1]')
    expect(readable(gm, { includeStride: false })).not.toContain('[3, 1]')
    vi.stubEnv('TENSORFX_FX_GRAPH_SHOW_DEVICE', '1')
    expect(readable(gm, {})).toContain('f32[2, 3][3, 1]cpu')
  })
})

describe('the source map', () => {
  it('leads from each generated line to the user’s', () => {
    const code = symbolicTrace(new Net()).recompile()
    const map = new SourceMap(code.sourceMap as unknown as SourceMapPayload)
    const here = fileURLToPath(import.meta.url)
    for (const [line, node] of code.lineMap) {
      if (node.op === 'output') continue
      const entry = map.findEntry(line - 1, 0) as { originalSource: string; originalLine: number }
      expect(fileURLToPath(entry.originalSource)).toBe(here)
      expect(String(node.stackTrace)).toContain(`line ${entry.originalLine + 1}, in`)
    }
    expect([...code.lineMap.values()].map((n) => n.name)).toContain('neg')
  })

  it('is null when nothing is known', () => {
    expect(new GraphModule({}, new Graph()).recompile().sourceMap).toBeNull()
  })
})
