// `tensorfx minify`: a saved graph shrinks while a command fails, and a command that tells nothing apart is an error.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { Graph } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { temporaryFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import type { Result } from '../../src/cli/line.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'

const work = temporaryFolder("it's a test ")
const at = (name: string): string => join(work, name)

const names = (graph: Graph): string[] => [...graph.nodes].map((node) => node.name)
const model = symbolicTrace((x: Tensor, y: Tensor) => {
  const a = x.sin().cos().add(y)
  const b = torch.relu(a.mul(2)).tanh()
  return [b.sub(1), a.exp()]
})
const json = at('model.json')
writeFileSync(json, JSON.stringify(graphToJson(model.graph)))
/** Fails while the graph has a relu. (The texts of its nodes' lines have one, too.) */
const HAS_RELU = `! grep -q '"name": "relu"'`
const runMinify = async (words: readonly string[], note: (line: string) => void = () => {}): Promise<Result> =>
  runTensorfx(['minify', ...words], { print: () => {}, note })
const minify = async (...words: string[]): Promise<Result> => runMinify([...words, '--quiet'])

describe('tensorfx minify', () => {
  it('reduces the JSON of a graph while a command fails, without running it', async () => {
    const lines: string[] = []
    const { text, code } = await runMinify([json, '--run', HAS_RELU], (line) => lines.push(line))
    expect([code, text.split('\n')[0]]).toEqual([0, expect.stringMatching(/^8 operators -> 1 operators, in \d+ runs of the command$/)])
    const small = graphFromJson(JSON.parse(readFileSync(at('model.min.json'), 'utf8')))
    expect(names(small)).toEqual(['mul', 'relu', 'output'])
    expect([...small.nodes].map((node) => Object.keys(node.meta))).not.toContain('concrete_value')
    expect(text).toContain(`Wrote ${at('model.min.json')}`)
    expect(lines[0]).toMatch(/^Truncate suffix: 11 nodes -> \d+$/)
    expect(Number(/(\d+) runs/.exec(text)?.[1])).toBeLessThan(20)
    // The original is as it was.
    expect(names(graphFromJson(JSON.parse(readFileSync(json, 'utf8'))))).toEqual(names(model.graph))
  })

  it('keeps two operators that fail only together, and what lies between', async () => {
    const both = `f() { ! { grep -q '"name": "sin"' "$1" && grep -q '"name": "exp"' "$1"; }; }; f`
    const { code } = await minify(json, '--run', both, '--out', at('both.json'))
    expect(code).toBe(0)
    expect(names(graphFromJson(JSON.parse(readFileSync(at('both.json'), 'utf8'))))).toEqual(expect.arrayContaining(['sin', 'exp']))
    expect(names(graphFromJson(JSON.parse(readFileSync(at('both.json'), 'utf8')))).length).toBeLessThanOrEqual(6)
  })

  it('reduces a module with weights, and with inputs also what they hold', async () => {
    class Layers extends nn.Module {
      readonly first = new nn.Linear(4, 8)
      readonly squashing = new nn.ReLU()
      readonly last = new nn.Linear(8, 2)
      forward(x: Tensor): Tensor {
        const wide = this.first.call(x)
        const squashed = this.squashing.call(wide)
        return this.last.call(squashed)
      }
    }
    const file = at('model.safetensors')
    writeFileSync(file, saveGraphModule(symbolicTrace(new Layers())))
    const isRelu = `! grep -qa 'name[^a-z]*squashing'`
    expect((await minify(file, '--run', isRelu)).code).toBe(0)
    expect(names(loadGraphModule(readFileSync(at('model.min.safetensors'))).graph)).toHaveLength(3)
    writeFileSync(at('inputs.safetensors'), writeSafetensors([['input_0', torch.randn([3, 4])]]))
    const { code, text } = await minify(file, '--run', isRelu, '--inputs', at('inputs.safetensors'), '--out', at('small.safetensors'))
    expect([code, text]).toEqual([0, expect.stringContaining('3 operators -> 1 operators')])
    expect(readSafetensors(readFileSync(at('small.safetensors.inputs.safetensors'))).tensors.get('input_0')?.shape).toEqual([1])
  })

  it('reduces the folder of a comparison', async () => {
    const folder = at('comparison')
    mkdirSync(folder)
    writeFileSync(join(folder, 'graph.safetensors'), saveGraphModule(model))
    writeFileSync(
      join(folder, 'inputs.safetensors'),
      writeSafetensors([
        ['input_0', torch.ones([2])],
        ['input_1', torch.ones([2])],
      ]),
    )
    const command = `f() { ! grep -qa 'name[^a-z]*relu' "$1/graph.safetensors"; }; f`
    expect((await minify(folder, '--run', command)).code).toBe(0)
    expect(names(loadGraphModule(readFileSync(join(work, 'comparison.min', 'graph.safetensors'))).graph)).toEqual(['mul', 'relu', 'output'])
    expect(existsSync(join(work, 'comparison.min', 'inputs.safetensors'))).toBe(true)
  })

  it('says of a command that it tells nothing apart', async () => {
    const passes = await minify(json, '--run', 'true')
    expect(passes).toMatchObject({ code: 1, text: expect.stringContaining('does not fail on the graph itself: its exit code was 0') })
    const fails = await minify(json, '--run', 'false')
    expect(fails).toMatchObject({
      code: 1,
      text: expect.stringMatching(/fails on anything: also on a graph that returns its input \(its exit code was 1\)/),
    })
    const missing = await minify(json, '--run', './no-such-check.sh')
    expect(missing).toMatchObject({ code: 2, text: expect.stringMatching(/the shell cannot run it/) })
    const other = await minify(json, '--run', HAS_RELU, '--exit-code', '3')
    expect(other).toMatchObject({ code: 1, text: expect.stringContaining('does not fail on the graph itself: its exit code was 1') })
    const slow = await minify(json, '--run', 'sleep 30; false', '--timeout', '0.2')
    expect(slow).toMatchObject({ code: 1, text: expect.stringMatching(/it took too long\. Give it more time/) })
  })

  it('counts death by a signal as a failure, and only the given exit code if there is one', async () => {
    const dies = `g() { grep -q '"name": "relu"' "$1" && kill -9 $$; true; }; g`
    expect((await minify(json, '--run', dies, '--out', at('dies.json'))).code).toBe(0)
    const code = `h() { grep -q '"name": "relu"' "$1" && exit 7; grep -q '"name": "sin"' "$1" && exit 3; true; }; h`
    await minify(json, '--run', code, '--exit-code', '7', '--out', at('seven.json'))
    expect(names(graphFromJson(JSON.parse(readFileSync(at('seven.json'), 'utf8'))))).toEqual(['mul', 'relu', 'output'])
  })

  it('stops at the most runs, with the smallest graph so far', async () => {
    const { text, code } = await minify(json, '--run', HAS_RELU, '--max-runs', '4', '--out', at('four.json'))
    expect(code).toBe(0)
    expect(text).toMatch(/in 4 runs of the command \(--max-runs was reached\)/)
    expect(readFileSync(at('four.json'), 'utf8')).toContain('relu')
  })

  it('names what is wrong with its arguments', async () => {
    const wrong = async (...words: string[]): Promise<string> => {
      const { text, code } = await runMinify(words)
      expect(code).toBe(2)
      return text.split('\n')[0] ?? ''
    }
    expect(await wrong(json)).toMatch(/--run is missing/)
    expect(await wrong('--run', 'true')).toMatch(/expected one saved graph, got 0/)
    expect(await wrong(json, '--rum', 'true')).toMatch(/unknown option '--rum'. Did you mean '--run'\?/)
    expect(await wrong(json, '--run')).toMatch(/--run needs a value/)
    expect(await wrong(at('nothing.json'), '--run', 'true')).toMatch(/there is no file or folder/)
    writeFileSync(at('model.txt'), '')
    writeFileSync(at('bad.json'), '{')
    expect(await wrong(at('model.txt'), '--run', 'true')).toMatch(/of no known format. Known are .json/)
    expect(await wrong(at('bad.json'), '--run', 'true')).toMatch(/is not JSON/)
    expect(await wrong(json, '--run', 'true', '--timeout', '-1')).toMatch(/--timeout needs a number of at least 0.001, got '-1'/)
    expect(await wrong(json, '--run', 'true', '--max-runs', '1.5')).toMatch(/--max-runs needs a whole number/)
    writeFileSync(at('one.safetensors'), writeSafetensors([['input_0', torch.ones([2])]]))
    expect(await wrong(json, '--run', 'true', '--inputs', at('one.safetensors'))).toMatch(/the graph has 2 inputs, and there are 1/)
    expect((await runMinify(['--help'])).code).toBe(0)
    expect((await runMinify([])).code).toBe(2)
  })

  it('is a command', () => {
    const printed = execFileSync(process.execPath, [bundledCommand, 'minify', json, '--run', HAS_RELU, '--out', at('program.json'), '--quiet'], {
      encoding: 'utf8',
    })
    expect(printed).toMatch(/8 operators -> 1 operators/)
  })
})
