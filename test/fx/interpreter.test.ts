// The Interpreter: results, partial runs, what it keeps and releases, hooks, errors.
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { Graph, GraphModule, Interpreter, Tracer, Transformer, makeProxy, mapArg, nodeOf, symbolicTrace } from 'tensorfx/fx'
import type { Argument, Node, Proxied, Target, TargetFunction } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'
import goldens from '../goldens/fx-extra/interpreter_docs.json' with { type: 'json' }
import { detInput } from '../helpers/deterministic.ts'
import { samples } from '../helpers/models.ts'

const { tensor } = torch

const { Module, Parameter } = nn
const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)

class MyModule extends Module {
  readonly param = new Parameter(torch.ones([3, 4]))
  readonly linear = new nn.Linear(4, 5)
  override forward(x: Tensor): Tensor {
    return this.linear.call(x.add(this.param)).clamp(0, 1)
  }
}

describe('running a graph', () => {
  it('test_interpreter: the result is the module’s', () => {
    const m = new MyModule()
    const x = detInput([3, 4], 1)
    expect(values(new Interpreter(symbolicTrace(m)).run(x))).toEqual(values(m.call(x)))
  })

  it('test_interpreter_other_graph: another graph runs on the module’s state', () => {
    const m = new MyModule()
    const x = detInput([3, 4], 1)
    const gm = symbolicTrace(m)
    const other = gm.graph.deepCopy()
    const node = [...other.nodes].find((n) => n.target === 'clamp') as Node
    node.target = 'relu'
    node.args = node.args.slice(0, 1)
    expect(values(new Interpreter(gm, { graph: other }).run(x))).toEqual(values(m.linear.call(x.add(m.param)).relu()))
  })

  it('test_interpreter_noop_resnet18: a larger model gives the same numbers', () => {
    const { make, inputs } = samples.cnn
    const model = make()
    expect(values(new Interpreter(symbolicTrace(model)).run(...inputs()))).toEqual(
      values((model.forward as (...a: unknown[]) => unknown)(...inputs())),
    )
  })

  it('test_interpreter_default_args: a default is used where nothing, or undefined, is given (difference: undefined-is-default)', () => {
    const gm = symbolicTrace((x: Tensor, y = 3) => x.add(y))
    const interpreter = new Interpreter(gm)
    expect([interpreter.run(tensor([1])), interpreter.run(tensor([1]), undefined), interpreter.run(tensor([1]), 5)].map(values)).toEqual([
      [4],
      [4],
      [6],
    ])
  })

  it('test_interpreter_not_enough_args, interpreter_missing_arg: a missing argument is an error that names it', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => x.add(y))
    expect(() => new Interpreter(gm).run(tensor([1]))).toThrow('Expected positional argument for parameter y, but one was not passed in!')
  })

  it('test_interpreter_star_args: a rest placeholder takes what is left', () => {
    const gm = symbolicTrace((x: Tensor, ...rest: Tensor[]) => x.add(rest[1] as Tensor))
    expect(values(new Interpreter(gm).run(tensor([1]), tensor([2]), tensor([3])))).toEqual([4])
  })

  it('test_interpreter_partial_eval: nodes of initialEnv do not run', () => {
    const gm = symbolicTrace((x: Tensor) => x.relu().add(1))
    const relu = [...gm.graph.nodes].find((n) => n.target === 'relu') as Node
    const ran: string[] = []
    class Notes extends Interpreter {
      override runNode(node: Node): unknown {
        ran.push(node.name)
        return super.runNode(node)
      }
    }
    expect(values(new Notes(gm).runWith([tensor([1])], { initialEnv: new Map([[relu, tensor([10])]]) }))).toEqual([11])
    expect(ran).toEqual(['x', 'add', 'output'])
  })

  it('a graph without output gives undefined', () => {
    const graph = new Graph()
    graph.placeholder('x')
    expect(new Interpreter(new GraphModule({}, graph)).run(1)).toBe(undefined)
  })
})

describe('overriding', () => {
  it('test_interpreter_run_node_override: runNode may look on and change', () => {
    const gm = symbolicTrace(new MyModule())
    const x = detInput([3, 4], 1)
    const seen: unknown[] = []
    class Runs extends Interpreter {
      override runNode(node: Node): unknown {
        const result = super.runNode(node)
        seen.push([node.op, result instanceof Tensor])
        return node.target === 'clamp' ? torch.neg(result as Tensor) : result
      }
    }
    expect(values(new Runs(gm).run(x))).toEqual(values(torch.neg(run(gm, x) as Tensor)))
    expect(seen).toHaveLength(6)
  })

  class NegSigmSwap extends Interpreter {
    override callFunction(target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
      return target === torch.sigmoid ? torch.neg(...(args as [Tensor])) : super.callFunction(target, args, kwargs)
    }
    override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
      return target === 'neg' ? (args[0] as Tensor).sigmoid() : super.callMethod(target, args, kwargs)
    }
  }
  const fn = (x: Tensor): Tensor => torch.sigmoid(x).neg()

  it('test_interpreter_onthefly_swap, interpreter_docs: neg and sigmoid change places, with PyTorch’s numbers', () => {
    const { shape, data } = goldens.input
    const input = tensor(data).view(shape)
    const out = values(new NegSigmSwap(symbolicTrace(fn)).run(input))
    goldens.swap.data.forEach((v, i) => expect(out[i]).toBeCloseTo(v, 6))
    expect(detInput(shape, 7).toArray()).toEqual(input.toArray())
  })

  it('interpreter_docs: the same as a Transformer gives PyTorch’s graph', () => {
    class Swap extends Transformer {
      override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return target === torch.sigmoid ? torch.neg(...(args as [Tensor])) : super.callFunction(target, args, kwargs)
      }
      override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return target === 'neg' ? (args[0] as Tensor).sigmoid() : super.callMethod(target, args, kwargs)
      }
    }
    expect(String(new Swap(symbolicTrace(fn)).transform().graph)).toBe(goldens.xform.str_graph)
  })

  it('interpreter_docs: a decomposition by proxies on a new graph', () => {
    const { relu } = torch.nn.functional
    const rules = new Map<unknown, (x: Tensor) => Tensor>([[relu, (x) => x.gt(0).mul(x)]])
    const graph = new Tracer().trace((x: Tensor) => relu(x).add(relu(x.mul(2))))
    const made = new Graph()
    const env = new Map<Node, Node>()
    for (const node of graph.nodes) {
      const rule = rules.get(node.target)
      if (rule === undefined)
        env.set(
          node,
          made.nodeCopy(node, (n) => env.get(n) as Node),
        )
      else env.set(node, nodeOf(rule(makeProxy(env.get(node.args[0] as Node) as Node) as unknown as Tensor) as unknown as Proxied))
    }
    // PyTorch's operators are functions of the operator module; ours are methods.
    const methods = goldens.decompose.str_graph.replaceAll('call_function[target=operator.', 'call_method[target=')
    expect(String(made)).toBe(methods)
  })

  it('interpreter_docs: adds become bitwise ands', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.add(x, y))
    const and = (a: unknown, b: unknown): unknown => [a, b]
    Object.defineProperty(and, 'name', { value: 'bitwise_and' })
    for (const node of gm.graph.nodes) {
      if (node.target !== torch.add) continue
      const made = gm.graph.insertingAfter(node, () => gm.graph.callFunction(and, node.args, node.kwargs))
      node.replaceAllUsesWith(made)
      gm.graph.eraseNode(node)
    }
    gm.recompile()
    expect(String(gm.graph)).toBe(goldens.docs_replace_add_bitwise_and.str_graph.replace('torch.bitwise_and', 'bitwise_and'))
  })
})

describe('what is kept', () => {
  const chain = (): GraphModule => symbolicTrace((x: Tensor) => x.relu().neg().add(1))

  it('test_interpreter_gc_values: after a run only live values stay, unless asked otherwise', () => {
    const names = (i: Interpreter): string[] => [...i.env.keys()].map((n) => n.name)
    const live = new Interpreter(chain())
    live.run(tensor([1]))
    expect(names(live)).toEqual(['output'])
    const all = new Interpreter(chain(), { garbageCollectValues: false })
    all.run(tensor([1]))
    expect(names(all)).toEqual(['x', 'relu', 'neg', 'add', 'output'])
  })

  it('keep: all, live, or the values of some nodes, for one run', () => {
    const gm = chain()
    const interpreter = new Interpreter(gm)
    const names = (): string[] => [...interpreter.env.keys()].map((n) => n.name)
    interpreter.runWith([tensor([1])], { keep: 'all' })
    expect(names()).toEqual(['x', 'relu', 'neg', 'add', 'output'])
    const relu = [...gm.graph.nodes][1] as Node
    interpreter.runWith([tensor([1])], { keep: [relu] })
    expect(names()).toEqual(['relu', 'output'])
    interpreter.runWith([tensor([1])], { keep: 'live' })
    expect(names()).toEqual(['output'])
    const other = new Interpreter(gm, { garbageCollectValues: false })
    other.runWith([tensor([1])], { keep: 'live' })
    expect([...other.env.keys()].map((n) => n.name)).toEqual(['output'])
  })

  it('boxedRun empties the array, and holds inputs no longer than they are used', () => {
    const gm = chain()
    const held: boolean[] = []
    class Watches extends Interpreter {
      override runNode(node: Node): unknown {
        held.push([...this.env.keys()].some((n) => n.op === 'placeholder'))
        return super.runNode(node)
      }
    }
    const box = [tensor([1])]
    expect(values(new Watches(gm).boxedRun(box))).toEqual([0])
    expect(box).toEqual([])
    expect(held).toEqual([false, true, false, false, false])
  })
})

describe('hooks', () => {
  it('before, after and failed are called around each node; after may replace a value', () => {
    const gm = symbolicTrace((x: Tensor) => x.relu().add(1))
    const log: string[] = []
    const interpreter = new Interpreter(gm)
    const remove = interpreter.addHook({
      before: (node, args) => void log.push(`> ${node.name} ${args.length}`),
      after: (node, value) => {
        log.push(`< ${node.name}`)
        return node.name === 'relu' ? (value as Tensor).mul(10) : undefined
      },
    })
    expect(values(interpreter.run(tensor([2])))).toEqual([21])
    expect(log).toEqual(['> x 0', '< x', '> relu 1', '< relu', '> add 2', '< add', '> output 1', '< output'])
    remove()
    expect(values(interpreter.run(tensor([2])))).toEqual([3])
    expect(log).toHaveLength(8)
  })

  it('failed hears of the node and the error', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.mm(x, y))
    const failed: string[] = []
    const interpreter = new Interpreter(gm)
    interpreter.addHook({ failed: (node, error) => void failed.push(`${node.name}: ${error instanceof Error}`) })
    expect(() => interpreter.run(torch.ones([2, 3]), torch.ones([2, 3]))).toThrow()
    expect(failed).toEqual(['mm: true'])
  })
})

describe('asynchronous runs', () => {
  it('each value is awaited, and an aborted signal ends the run', async () => {
    const gm = symbolicTrace((x: Tensor) => x.relu().add(1))
    class Later extends Interpreter {
      override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return Promise.resolve(super.callMethod(target, args, kwargs))
      }
    }
    expect(values(await new Later(gm).runAsync([tensor([2])], { yieldTurns: true }))).toEqual([3])
    const stop = new AbortController()
    const interpreter = new Later(gm)
    interpreter.addHook({ after: (node) => (node.name === 'relu' ? stop.abort(new Error('enough')) : undefined) })
    await expect(interpreter.runAsync([tensor([2])], { signal: stop.signal })).rejects.toThrow('enough')
    expect([...interpreter.env.keys()].map((n) => n.name)).toEqual(['relu'])
  })
})

describe('errors', () => {
  it('interpreter_failing_node: the node and the user’s stack follow the message', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.mm(x, y))
    const error = ((): Error => {
      try {
        new Interpreter(gm).run(torch.ones([2, 3]), torch.ones([2, 3]))
      } catch (e) {
        return e as Error
      }
      throw new Error('no error')
    })()
    expect(error.message).toContain(
      '\n\nWhile executing %mm : [num_users=1] = call_function[target=torch.mm](args = (%x, %y), kwargs = {})\nOriginal traceback:\n',
    )
    expect(error.message).toMatch(/File ".*interpreter\.test\.ts", line \d+, in /)
    expect(error.message.match(/While executing/g)).toHaveLength(1)
  })

  it('a target that does not exist is named as far as it is missing', () => {
    const graph = new Graph()
    graph.output(graph.getAttr('a.b.c'))
    const root = { 'a.b.c': tensor([1]) }
    const gm = new GraphModule(root, graph)
    ;(gm as unknown as Record<string, unknown>)['a'] = new (class extends Module {
      override forward(): void {}
    })()
    expect(() => new Interpreter(gm).run()).toThrow('Node referenced nonexistent target a.b')
  })

  it('a value that was not computed is named', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const late = graph.callMethod('neg', [x])
    const early = graph.insertingBefore(late, () => graph.callMethod('relu', [late]))
    graph.output(early)
    expect(() => new Interpreter(new GraphModule({}, graph)).run(tensor([1]))).toThrow(
      'Node relu referenced nonexistent value neg! Run Graph.lint() to diagnose such issues',
    )
  })

  it('a method that the value does not have is named', () => {
    const graph = new Graph()
    graph.output(graph.callMethod('fly', [graph.placeholder('x')]))
    expect(() => new Interpreter(new GraphModule({}, graph)).run(tensor([1]))).toThrow("call_method: the value has no method 'fly'")
  })
})

describe('mapArg', () => {
  it('gives the values of nodes in nested arguments', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    expect(mapArg([x, { y: [x, 2] }] as Argument, () => 7)).toEqual([7, { y: [7, 2] }])
  })
})
