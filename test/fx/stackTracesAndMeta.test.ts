// What PyTorch notes on nodes while tracing (goldens/fx-extra/stack_traces_and_meta.json), and what readable code says without stacks.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Tracer, symbolicTrace } from 'tensorfx/fx'
import { Linear, ReLU, Sequential } from 'tensorfx/nn'
import golden from '../goldens/fx-extra/stack_traces_and_meta.json' with { type: 'json' }

const f = (x: Tensor): Tensor => torch.relu(x.add(1))

/** Statements without what is Python's or JavaScript's alone: names, releases and the comment stay. */
const statements = (code: string): string[] =>
  code
    .split('\n')
    .slice(1, -1)
    .map((line) =>
      line
        .trim()
        .replace(/^(#|\/\/) /, '')
        .replace(/^(const|let) /, '')
        .replace(/; +/, '; ')
        .replace('null', 'None')
        .replace('x + 1', 'x.add(1)'),
    )

describe('stack traces and meta', () => {
  it('nodes of a trace without stacks have no meta, and readable code says so once', () => {
    const tracer = new Tracer()
    tracer.recordStackTraces = false
    const gm = new GraphModule(tracer.root, tracer.trace(f))
    expect(Object.fromEntries([...gm.graph.nodes].map((n) => [n.name, Object.keys(n.meta)]))).toEqual(golden.meta_keys)
    expect(Object.fromEntries([...gm.graph.nodes].map((n) => [n.name, n.stackTrace]))).toEqual(golden.stack)
    expect(statements(gm.graph.generateCode({ verbose: true }).source)).toEqual(statements(golden.verbose.trimStart()))
  })

  it('nodes of a module know the path and class of the module that made them', () => {
    const gm = symbolicTrace(new Sequential(new Linear(1, 1), new ReLU()))
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(Object.keys(golden.module_meta))
    for (const node of gm.graph.nodes) {
      const theirs = (golden.module_meta as Record<string, { readonly nn_module_stack?: string }>)[node.name]?.nn_module_stack
      const [, key, path, className] = /^OrderedDict\(\[\('(.*?)', \('(.*?)', <class '.*\.(\w+)'>\)\)\]\)$/.exec(theirs ?? '') ?? []
      const ours = [...((node.meta['nn_module_stack'] as ReadonlyMap<string, readonly [string, unknown]> | undefined) ?? [])]
      expect(ours.map(([k, [p, c]]) => [k, p, typeof c === 'function' ? c.name : c])).toEqual(theirs === undefined ? [] : [[key, path, className]])
    }
  })
})
