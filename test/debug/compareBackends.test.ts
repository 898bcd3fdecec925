// compareBackends: planted faults are found where they are, correct backends have none, and a difference ends in a repro.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MemoryFileStore, compareBackends, fileStore, setFileStore } from 'tensorfx/debug'
import { Graph, GraphModule, Interpreter, operator, symbolicTrace } from 'tensorfx/fx'
import { F } from 'tensorfx/nn'
import type { Backend } from '../../src/dynamo/index.ts'
import { defaultGenerator } from '../../src/tensor/index.ts'
import { Faulty, replacing, rightValue } from './faultyBackends.ts'
import { FAULTS, TOLERANCE, asTensor, expectNamed, sample } from './placesOfModels.ts'
import { tenth, turn } from '../helpers/rotation.ts'

describe('a planted fault is named, and no node that inherits it', () => {
  it('in 6 places of a CNN', async () => {
    const { gm, inputs } = sample('cnn')
    await expectNamed(gm, inputs, [
      ['conv1', 'off-by-one pad'],
      ['bn1', 'wrong eps'],
      ['conv2', 'off-by-one pad'],
      ['bn2', 'wrong eps'],
      ['pool', 'float16 rounding'],
      ['fc', 'float16 rounding'],
    ])
  })

  it('in places of two GPT blocks', async () => {
    const { gm, inputs } = sample('gpt2.proxy_buffers')
    const places = [
      ['blocks_0_ln_1', 'wrong eps'],
      ['blocks_0_attn_c_attn', 'float16 rounding'],
      ['matmul', 'swapped operands'],
      ['softmax', 'wrong axis'],
      ['blocks_0_mlp_1', 'float16 rounding'],
      ['blocks_1_ln_2', 'wrong eps'],
      ['matmul_2', 'swapped operands'],
      ['softmax_1', 'wrong axis'],
      ['matmul_3', 'float16 rounding'],
      ['blocks_1_mlp_2', 'float16 rounding'],
      ['add_4', 'float16 rounding'],
      ['ln_f', 'wrong eps'],
    ] as const
    await expectNamed(
      gm,
      inputs,
      tenth(places, ([name]) => name),
    )
  })
})

describe('compareBackends', { timeout: 120_000 }, () => {
  it('finds no node in eager, inductor, aot_eager and onnxruntime', async () => {
    const { gm, inputs } = sample('gpt2.proxy_buffers')
    // One compiler besides eager each day.
    const backends = ['eager', ...turn(['inductor', 'aot_eager', 'onnxruntime'])]
    const result = await compareBackends(gm, inputs, { backends, tol: TOLERANCE })
    expect([...result.culprits]).toEqual(backends.map((name) => [name, null]))
    expect(result.notes).toEqual([])
    for (const row of result.rows)
      for (const name of backends) {
        expect([row.node.name, name, row.alone.get(name)?.status]).toEqual([row.node.name, name, 'ok'])
        if (name !== 'eager' && row.node.name !== 'split' && row.node.name !== 'split_1')
          expect(row.inGraph.get(name)?.status, `${row.node.name} in ${name}`).toBe('ok')
      }
    expect(String(result)).toMatch(new RegExp(`^node +target +value +${backends.join(' +')}\\n`))
    expect(String(result)).toContain(`${backends.at(-1)}: no node differs`)
  })

  const x = torch.tensor([
    [0.5, -1.5],
    [2, 3],
  ])
  const program = symbolicTrace((a: Tensor) => a.mul(a).add(1).relu().sub(0.25))

  it('finds what is wrong only among other nodes', async () => {
    const among: Backend =
      (gm) =>
      (...inputs: readonly unknown[]) =>
        new Faulty(gm, gm.graph.nodes.length > 4 ? 'relu' : '', (_, __, args) => asTensor(args[0])).run(...inputs)
    const result = await compareBackends(
      symbolicTrace((a: Tensor) => a.mul(2).relu().sub(1)),
      [x],
      { backends: [among] },
    )
    expect(result.first).toMatchObject({ backend: 'among', found: 'in the graph', error: expect.any(Number) })
    expect(result.first?.nodes.map((node) => node.name)).toEqual(['relu'])
  })

  it('finds what is wrong only where nodes are fused', async () => {
    // Wrong if the product is not an output: when a kernel computes both.
    const fused: Backend =
      (gm) =>
      (...inputs: readonly unknown[]) => {
        const product = [...gm.graph.nodes].find((node) => node.name === 'mul')
        const isFused = product !== undefined && product.op !== 'placeholder' && [...product.users.keys()].every((user) => user.name === 'add')
        return new Faulty(gm, isFused ? 'add' : '', (_, __, args) => asTensor(args[0]).add(1.5)).run(...inputs)
      }
    const result = await compareBackends(program, [x], { backends: [fused] })
    expect(result.first?.found).toBe('only where it is fused')
    expect(result.first?.nodes.map((node) => node.name)).toEqual(['mul', 'add'])
  })

  it('compares a graph that writes to what is read later in functional form', async () => {
    const gm = symbolicTrace((a: Tensor) => {
      const b = a.mul(2)
      const c = b.add(1)
      b.add_(5)
      return c.mul(b)
    })
    const result = await compareBackends(gm, [x], { backends: ['eager', 'inductor'] })
    expect([result.functional, result.first]).toEqual([true, null])
    expect((await compareBackends(program, [x], { backends: ['eager'] })).functional).toBe(false)
    expect(x.toArray()).toEqual([
      [0.5, -1.5],
      [2, 3],
    ])
  })

  it('does not take a value that is written over later for a wrong one', async () => {
    const gm = symbolicTrace((a: Tensor) => a.mul(2).view(-1).add_(1).relu_())
    const result = await compareBackends(gm, [x], { backends: ['eager', 'inductor', 'onnxruntime'] })
    expect([result.functional, result.first, result.notes]).toEqual([false, null, []])
    expect(result.rows.map((row) => [row.node.name, row.alone.get('onnxruntime')?.status, row.inGraph.get('onnxruntime')?.status])).toEqual([
      ['mul', 'ok', undefined],
      ['view', 'ok', undefined],
      ['add_', 'ok', undefined],
      ['relu_', 'ok', 'ok'],
    ])
    // A wrong one among them is still found.
    const wrong = replacing('relu_', FAULTS['float16 rounding'], 'float16 rounding at relu_')
    expect(
      (await compareBackends(gm, [torch.tensor([[0.1234567]])], { backends: [wrong], tol: 1e-6 })).first?.nodes.map((node) => node.name),
    ).toEqual(['relu_'])
  })

  it('leaves out the copy back to an input that the graph writes to', async () => {
    const gm = symbolicTrace((a: Tensor) => {
      a.add_(1)
      return torch.sin(a)
    })
    const result = await compareBackends(gm, [x], { backends: ['eager'] })
    expect([result.functional, result.first, result.rows.map((row) => row.node.name)]).toEqual([true, null, ['add', 'sin']])
  })

  it('has a row for functions, methods and layers, with their dtype and shape', async () => {
    class Model extends nn.Module {
      readonly layer = new nn.Linear(2, 3)
      forward(a: Tensor): unknown {
        const b = torch.relu(this.layer(a))
        return [b.argmax(), torch.split(b, 1)[0]]
      }
    }
    const result = await compareBackends(symbolicTrace(new Model()), [x], { backends: ['eager'] })
    expect(result.rows.map(({ node, dtype, shape }) => [node.name, dtype, shape])).toEqual([
      ['layer', 'float32', [2, 3]],
      ['relu', 'float32', [2, 3]],
      ['argmax', 'int64', []],
      ['split', 'float32', [1, 3]],
    ])
  })

  it('finds what is wrong in a graph where another node has several results', async () => {
    const among: Backend =
      (gm) =>
      (...inputs: readonly unknown[]) =>
        new Faulty(gm, gm.graph.nodes.length > 5 ? 'relu' : '', (_, __, args) => asTensor(args[0])).run(...inputs)
    const gm = symbolicTrace((a: Tensor) => torch.relu(asTensor(operator.getitem(torch.split(a.mul(2), 1), 0))))
    const result = await compareBackends(gm, [x], { backends: [among] })
    expect([result.notes, result.first?.found, result.first?.nodes.map((node) => node.name)]).toEqual([[], 'in the graph', ['relu']])
    expect(result.rows.map((row) => [row.node.name, row.inGraph.get('among')?.status])).toEqual([
      ['mul', 'ok'],
      ['split', undefined],
      ['relu', 'differs'],
    ])
    expect(String(result)).toMatch(/^relu .* \*$/m)
  })

  it('says of a backend that cannot run single nodes what it gets wrong in the graph', async () => {
    const wholeOnly: Backend = (gm) => {
      if (gm.graph.nodes.length < 5) throw new RangeError('too small')
      return (...inputs: readonly unknown[]) => new Faulty(gm, 'sub', (_, __, args) => asTensor(args[0])).run(...inputs)
    }
    const result = await compareBackends(program, [x], { backends: [wholeOnly] })
    expect(result.first).toMatchObject({ found: 'in the graph' })
    expect(String(result)).toMatch(/^mul .* failed$/m)
    expect(String(result)).toMatch(/^sub .* \*$/m)
  })

  it('says of a backend that it returns too few values', async () => {
    const first: Backend =
      (gm) =>
      (...inputs: readonly unknown[]) => {
        const out: unknown = new Interpreter(gm).run(...inputs)
        return Array.isArray(out) ? out.slice(0, 1) : out
      }
    const result = await compareBackends(program, [x], { backends: [first] })
    expect(result.notes).toEqual([
      'first: the graph with all values as outputs could not be run: ArgumentError: compareBackends: with all values as outputs, the backend returned 1 tensors instead of 4.',
    ])
    expect(result.first).toMatchObject({ kind: 'failed', found: 'in the graph', reason: expect.stringContaining('returned 1 tensors instead of 4') })
    expect(result.first?.nodes.map((node) => node.name)).toEqual(['output'])
  })

  it('runs onnxruntime:webgpu on WebGPU and on nothing else', async () => {
    const result = await compareBackends(program, [x], { backends: ['onnxruntime:webgpu'] })
    expect(result.rows.map((row) => row.alone.get('onnxruntime:webgpu')?.status)).toEqual(['failed', 'failed', 'failed', 'failed'])
    expect(result.rows[0]?.alone.get('onnxruntime:webgpu')?.reason).toMatch(/webgpu/i)
  })

  it('minifies what one backend gets wrong and another right, and names both in the script', async () => {
    const before = fileStore()
    const store = new MemoryFileStore()
    setFileStore(store)
    try {
      const wrong = 'relu_accuracy_error_TESTING_ONLY'
      const result = await compareBackends(program, [x], { backends: [wrong, 'eager'], reference: 'eager' })
      const small = await result.minify(wrong, { against: 'eager', directory: '/out' })
      expect([...small.gm.graph.nodes].map((node) => node.name)).toEqual(['add', 'relu', 'output'])
      const script = new TextDecoder().decode(store.files.get('/out/compare.mjs'))
      expect(script).toContain(`// The backend '${wrong}' differs from the reference (eager) for this graph, and 'eager' does not.`)
      expect(script).toContain(`const backends = ['${wrong}', 'eager']\n`)
      expect(script).toContain('const [isWrong, isOtherWrong] = ')
      expect(script).toContain('process.exitCode = isWrong && !isOtherWrong ? 1 : 0')
      await expect(result.minify(wrong, { against: wrong })).rejects.toThrow('Input graph did not fail the tester')
      await expect(result.minify(wrong, { against: 'inductor' })).rejects.toThrow("'inductor' was not compared")
    } finally {
      setFileStore(before)
    }
  })

  it('lets reference and backends draw the same numbers, and leaves the generator as it was', async () => {
    const gm = symbolicTrace((a: Tensor) => F.dropout(F.dropout(a.mul(2), { p: 0.5 }).add(1), { p: 0.25 }))
    const halved: Backend =
      (graph) =>
      (...inputs: readonly unknown[]) =>
        new Faulty(graph, 'dropout', (run, node) => asTensor(rightValue(run, node)).div(2)).run(...inputs)
    const still: Backend =
      (graph) =>
      (...inputs: readonly unknown[]) =>
        new Faulty(graph, 'dropout', (_, __, args) => args[0]).run(...inputs)
    torch.manualSeed(7)
    const next = torch.rand([3]).toArray()
    torch.manualSeed(7)
    const result = await compareBackends(gm, [x], { backends: ['eager', 'inductor', 'aot_eager', halved, still] })
    expect(torch.rand([3]).toArray()).toEqual(next)
    expect([...result.culprits].map(([name, culprit]) => [name, culprit?.nodes.map((node) => node.name)])).toEqual([
      ['eager', undefined],
      ['inductor', undefined],
      ['aot_eager', undefined],
      ['halved', ['dropout']],
      ['still', ['dropout']],
    ])
    expect(result.rows.map((row) => [row.node.name, row.inGraph.get('inductor')?.status])).toEqual([
      ['mul', 'ok'],
      ['dropout', 'ok'],
      ['add', 'ok'],
      ['dropout_1', 'ok'],
    ])
    // onnxruntime has a generator of its own.
    const elsewhere = await compareBackends(gm, [x], { backends: ['onnxruntime'] })
    expect(elsewhere.statuses).toEqual(new Map([['onnxruntime', 'not judged']]))
    expect(elsewhere.notes[0]).toMatch(/^onnxruntime: the whole graph is not compared: 'dropout' cannot be, since it draws random numbers/)
    expect(String(elsewhere)).toContain("onnxruntime: not judged: 'dropout' cannot be compared")
  })

  it('names what cannot run', async () => {
    const inverse = await compareBackends(
      symbolicTrace((a: Tensor) => torch.linalg.inv(a).add(1)),
      [x],
      { backends: ['onnxruntime'] },
    )
    expect(inverse.first).toMatchObject({
      kind: 'failed',
      reason: expect.stringMatching(/torch\.linalg\.inv cannot be exported/),
      thrown: expect.any(Error),
    })
    expect(inverse.first?.nodes.map((node) => node.name)).toEqual(['inv'])
    expect([...inverse.statuses]).toEqual([['onnxruntime', 'failed']])
    expect(String(inverse)).toMatch(/inv .*failed/)
    expect(String(inverse)).toMatch(/onnxruntime: 'inv' could not be run \(.*found alone\)/)
  })

  it('minifies a difference, and writes a repro', async () => {
    const result = await compareBackends(program, [x], { backends: ['relu_accuracy_error_TESTING_ONLY'] })
    expect(result.first?.nodes.map((node) => node.name)).toEqual(['relu'])
    const small = await result.minify('relu_accuracy_error_TESTING_ONLY')
    expect([...small.gm.graph.nodes].map((node) => node.op)).toEqual(['placeholder', 'call_method', 'output'])
    expect(small.path).toBeNull()
    await expect(result.minify('inductor')).rejects.toThrow(/'inductor' was not compared/)
  })

  it('refuses bad options', async () => {
    await expect(compareBackends(program, [x], { backends: [] })).rejects.toThrow(/backends is empty/)
    await expect(compareBackends(program, [x], { backends: ['inductr'] })).rejects.toThrow(/inductr/)
    await expect(compareBackends(program, [x], { backends: [3 as never] })).rejects.toThrow(/a backend must be a name or a function .*got/)
    await expect(compareBackends(program, [x], { backends: ['eager'], tol: 0 })).rejects.toThrow(/tol/)
    await expect(compareBackends(program, [x], { backends: ['eager'], reference: 'float32' as never })).rejects.toThrow(/reference/)
    await expect(compareBackends(program, [x], { backend: ['eager'] } as never)).rejects.toThrow(/backend/)
  })
})

it('a node that holds numbers which the program has drawn is compared like any other', async () => {
  const graph = new Graph()
  const { seedLo, seedHi, offsetLo, offsetHi } = defaultGenerator.draw()
  graph.output([graph.callFunction(torch.ops.tensorfx.philoxUniform, [[4], seedLo, seedHi, offsetLo, offsetHi])])
  const result = await compareBackends(new GraphModule({}, graph), [], { backends: ['eager', 'aot_eager', 'inductor'] })
  expect([...result.statuses.values()]).toEqual(['right', 'right', 'right'])
})

it('a gradient of a convolution that was not asked for is empty on all backends', async () => {
  const gm = symbolicTrace((grad: Tensor, x: Tensor, w: Tensor) => {
    const gradients = torch.ops.tensorfx.convolutionBackward(grad, x, w, [1, 1], [1, 1], [1, 1], 1, false, true)
    return [gradients[0], gradients[1]]
  })
  const inputs = [torch.randn([2, 4, 8, 8]), torch.randn([2, 3, 8, 8]), torch.randn([4, 3, 3, 3])]
  const result = await compareBackends(gm, inputs, { backends: ['eager', 'aot_eager', 'inductor'] })
  expect([...result.statuses.values()]).toEqual(['right', 'right', 'right'])
})
