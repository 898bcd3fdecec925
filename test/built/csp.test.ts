// Where no text may become code (a Content-Security-Policy without 'unsafe-eval'; here Node's flag for that), everything runs all the same. test:browser tries real
// headers.
import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { bundledHome } from '../../scripts/bundled.mjs'

/** Runs a program as a module in Node, with and without permission to generate code. */
function both(code: string): { readonly free: string; readonly bound: string; readonly warnings: readonly string[] } {
  const run = (flags: readonly string[]): { readonly out: string; readonly err: string } => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', code], {
      cwd: bundledHome,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stderr)
    return { out: stdout, err: stderr }
  }
  const [free, bound] = [run([]), run(['--disallow-code-generation-from-strings'])]
  expect(free.err).toBe('')
  return { free: free.out, bound: bound.out, warnings: bound.err.split('\n').filter((line) => line !== '') }
}

const imports = `
  import { compile, nn, optim, torch } from './dist/index.js'
  import { symbolicTrace } from './dist/entries/fx.js'
  torch.manualSeed(1)
  const print = (value) => console.log(JSON.stringify(value))`

describe("without 'unsafe-eval'", () => {
  it('the flag of this test forbids what it should', () => {
    const program = `try { (0, eval)('1'); console.log('allowed') } catch (error) { console.log(error.name) }`
    expect(execFileSync(process.execPath, ['--disallow-code-generation-from-strings', '-e', program], { encoding: 'utf8' })).toBe('EvalError\n')
  })

  it('GraphModules run node by node, with one notice', () => {
    const { free, bound, warnings } = both(`${imports}
      class Net extends nn.Module {
        constructor() { super(); this.fc = new nn.Linear(3, 2) }
        forward(x, scale = 2, ...rest) { return { out: this.fc(x).mul(scale).relu(), count: torch.add(x, 1) } }
      }
      const gm = symbolicTrace(new Net(), { concreteArgs: { rest: [] } })
      const x = torch.arange(6, { dtype: 'float32' }).reshape([2, 3])
      for (const args of [[x], [x, 3], [x, undefined]]) print(Object.values(gm.call(...args)).map((t) => t.toArray()))
      print(gm.code)
      // Old code runs until recompile(), and then the new one.
      const plus = symbolicTrace((a) => a.add(1))
      print(plus(torch.ones([2])).toArray())
      const node = plus.graph.findNodes({ op: 'call_method' })[0]
      node.target = 'sub'
      console.warn = () => {}
      print(plus(torch.ones([2])).toArray())
      plus.recompile()
      print(plus(torch.ones([2])).toArray())
      let message = ''
      try { gm.call(torch.ones([4])) } catch (error) { message = error.message }
      print(message.includes('While executing') && message.includes('fc'))`)
    expect(bound).toBe(free)
    expect(free.split('\n').at(-2)).toBe('true')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain("a Content-Security-Policy without 'unsafe-eval'")
    expect(warnings[0]).toContain('docs/guide/csp.md')
  })

  it('compiled functions compute the same, forward and backward, with spilled tensors and in-place writes, with one notice', () => {
    const { free, bound, warnings } = both(`${imports}
      import { setSoftLimit } from './dist/entries/kernels.js'
      const train = (steps) => {
        const model = new nn.Sequential(new nn.Conv2d(1, 4, 3), new nn.ReLU(), new nn.Flatten(), new nn.Linear(4 * 36, 3))
        const step = compile((x) => torch.logSoftmax(model(x), 1).mean([0]).square().sum())
        const adam = new optim.Adam(model.parameters(), { lr: 0.01 })
        for (let i = 0; i < steps; i++) {
          adam.zeroGrad()
          const loss = step(torch.randn([2, 1, 8, 8]))
          loss.backward()
          adam.step()
          print(loss.item())
        }
        print([...model.parameters()].map((p) => p.sum().item()))
      }
      train(4)
      const inPlace = compile((x, n) => { x.mul_(2); x.add_(n); return [x.t(), x.sum(), torch.topk(x.reshape([-1]), 2)[0], n] })
      const values = (outs) => outs.map((o) => (typeof o === 'number' ? o : o.toArray()))
      print(values(inPlace(torch.arange(6, { dtype: 'float32' }).reshape([2, 3]), 3)))
      setSoftLimit(0)
      print(values(inPlace(torch.arange(6, { dtype: 'float32' }).reshape([2, 3]), 3)))
      // With no room in the heap, every allocation collects garbage first.
      train(1)`)
    expect(bound).toBe(free)
    expect(free.split('\n').length).toBeGreaterThan(9)
    expect(warnings).toHaveLength(1)
  })

  it('a graph whose code was changed by a transformer says so, when it runs and not when it is edited', () => {
    const { bound } = both(`${imports}
      console.warn = () => {}
      const gm = symbolicTrace((x) => x.add(1))
      gm.graph.onGenerateCode(() => (body) => ['globalThis.ran = true', ...body])
      gm.recompile()
      gm.graph.findNodes({ op: 'call_method' })[0].target = 'sub'
      gm.recompile()
      try { gm(torch.ones([1])); console.log('ran', globalThis.ran) } catch (error) { console.log(error.name, error.message) }`)
    expect(bound).toMatch(/^GraphError GraphModule '.*': onGenerateCode changed its code, and generated code is not allowed here/)
  })
})

it("without 'wasm-unsafe-eval' the error names the directive", () => {
  const program = `
    const Module = WebAssembly.Module
    WebAssembly.Module = function () { throw new WebAssembly.CompileError('Wasm code generation disallowed by embedder') }
    const { torch } = await import('./dist/index.js')
    try { torch.ones([2]).add(1) } catch (error) { console.log(error.name, '|', error.message, '|', error.cause.name) }`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { cwd: bundledHome, encoding: 'utf8' })
  expect(stdout).toMatch(/^UnsupportedError \| WebAssembly is not allowed here.* add 'wasm-unsafe-eval' to script-src .* \| CompileError\n$/)
})
