// rewriteSource and the bundler plugin: modules as text.
import { describe, expect, it } from 'vitest'
import { build } from 'esbuild'
import { rewriteSource, rewriterPlugin } from 'tensorfx/rewriter'

const lines = (code: string): number => code.split('\n').length

describe('rewriteSource', () => {
  it('keeps lines, and imports what it calls behind directives', () => {
    const source =
      "#!/usr/bin/env node\n'use client'\nexport const f = (x) => {\n  if (\n    x &&\n    x.a === 3\n  )\n    return x\n  return !x\n}\n"
    const { code = '' } = rewriteSource(source) ?? {}
    expect(lines(code)).toBe(lines(source))
    // It is a module that can be parsed, and whose first statements are as before.
    expect(rewriteSource(code.replaceAll('__tensorfx.', '__other.'))?.code).toContain("'use client'")
    expect(code).toMatchInlineSnapshot(`
      "#!/usr/bin/env node
      'use client';import { runtime as __tensorfx } from "tensorfx/rewriter/runtime";
      export const f = (x) => {
        if (
          __tensorfx.bool(__tensorfx.value(__tensorfx.test(x ) ?
          __tensorfx.same(x.a , 3) : __tensorfx.left))
        )
          return x
        return !__tensorfx.bool(x)
      }
      "
    `)
  })

  it('gives null for a module without conditions, and for one that is rewritten already', () => {
    expect(rewriteSource('export const f = (x) => x.neg() < 3')).toBe(null)
    const once = rewriteSource('export const f = (x) => !x')?.code ?? ''
    expect(rewriteSource(once)).toBe(null)
  })

  it('names that the module declares are its own', () => {
    expect(rewriteSource('import { console } from "./log.js"; console.assert(1)')).toBe(null)
    expect(rewriteSource('const Boolean = (x) => x; export default Boolean(1)')).toBe(null)
    expect(rewriteSource('console.assert(1)')?.code).toContain('__tensorfx.assert(1)')
  })

  it('code that is not JavaScript is an error that names the file', () => {
    expect(() => rewriteSource('const x: number = 1', { file: 'a.ts' })).toThrow('a.ts cannot be rewritten, because it is not valid JavaScript')
  })

  it('maps columns to those of the original', () => {
    const { map } = rewriteSource('export const f = (x) => !x.value', { file: 'f.js' }) ?? {}
    expect(JSON.parse(String(map))).toMatchObject({ version: 3, sources: ['f.js'] })
  })
})

describe('rewriterPlugin', () => {
  it('rewrites the files that it includes', () => {
    const plugin = rewriterPlugin()
    expect(plugin.transform('export const f = (x) => !x', '/src/f.ts')?.code).toContain('tensorfx/rewriter/runtime')
    expect(plugin.transform('export const f = (x) => !x', '/node_modules/a/f.js')).toBe(null)
    expect(plugin.transform('h1 { color: red }', '/src/a.css')).toBe(null)
    expect(rewriterPlugin({ include: (path) => path.endsWith('.model.js') }).transform('export default !1', '/src/f.js')).toBe(null)
  })

  it('a bundle keeps closures, and its tracer sees conditions', async () => {
    const program = `
      const limit = 2
      let calls = 0
      export const f = (x) => { calls++; return x.size(0) === limit ? x : x.neg() }
      export const count = () => calls`
    const rewritten = rewriterPlugin().transform(program, 'f.js')?.code ?? ''
    const { outputFiles } = await build({
      stdin: { contents: rewritten, loader: 'js' },
      bundle: true,
      write: false,
      format: 'esm',
      external: ['tensorfx/*'],
    })
    const text = outputFiles[0]?.text ?? ''
    expect(text).toContain('from "tensorfx/rewriter/runtime"')
    expect(text).toContain('.same(')
  })
})
