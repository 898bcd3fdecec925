// What PyTorch's operators say of the layouts of their results over symbols (test/goldens/symbols/shapeRules.json): the same sizes, strides and offsets for drawn sizes that satisfy the guards of both.
// A simpler expression, and fewer or weaker guards, are as good.
import { describe, expect, it } from 'vitest'
import { ShapeError, UnsupportedError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { ShapeEnv, floorDivide, freeSymbols, parseExpr, symAdd, symMul, symSub, symbol } from '../../src/symbols/index.ts'
import type { NumberLike, SymbolExpr } from '../../src/symbols/index.ts'
import { isList, readGolden } from './golden.ts'
import type { Json } from './golden.ts'
import { assignments, evaluateAt, exprOf, numbersAt, randomNumbers, runSymbolically } from './shapes.ts'
import type { Assignment, SymbolicRun } from './shapes.ts'

const F = torch.nn.functional
/** A size as what programs see: a symbol with the type of a number. */
const size = (value: NumberLike): number => value as number
const times = (a: number, b: number): number => size(symMul(a, b))
const half = (a: number): number => size(floorDivide(a, 2))
const add = (a: number, b: number): number => size(symAdd(a, b))
const sub = (a: number, b: number): number => size(symSub(a, b))
const at = (x: Tensor, dim: number): number => x.shape[dim] ?? 0

type Program = (x: Tensor, y: Tensor, z: Tensor) => unknown
/** The programs, by their Python text. */
const programs: Readonly<Record<string, Program>> = {
  'x+y': (x, y) => x.add(y),
  'x+1': (x) => x.add(1),
  'x.t()': (x) => x.t(),
  'x.transpose(0,2)': (x) => x.transpose(0, 2),
  'x.reshape(-1)': (x) => x.reshape(-1),
  'x.view(-1)': (x) => x.view(-1),
  'x.view(x.shape[0]*x.shape[1])': (x) => x.view(times(at(x, 0), at(x, 1))),
  'x.view(12)': (x) => x.view(12),
  'x.view(x.shape[0],-1,2)': (x) => x.view(at(x, 0), -1, 2),
  'x.view(-1,x.shape[1],1)': (x) => x.view(-1, at(x, 1), 1),
  'x.reshape(x.shape[1],x.shape[0])': (x) => x.reshape(at(x, 1), at(x, 0)),
  'x.t().reshape(-1)': (x) => x.t().reshape(-1),
  'x.flatten(1)': (x) => x.flatten(1),
  'x.flatten(0,1)': (x) => x.flatten(0, 1),
  'x.unflatten(1,(2,-1))': (x) => x.unflatten(1, [2, -1]),
  'x.unsqueeze(1)': (x) => x.unsqueeze(1),
  'x.squeeze(0)': (x) => x.squeeze(0),
  'x.expand(5,-1,-1)': (x) => x.expand(5, -1, -1),
  'x.expand(x.shape[0],x.shape[1])': (x) => x.expand(at(x, 0), at(x, 1)),
  'x.expand(x.shape[0],7)': (x) => x.expand(at(x, 0), 7),
  'x.repeat_interleave(2,0)': (x) => x.repeatInterleave(2, 0),
  'x[0]': (x) => x.select(0, 0),
  'x[-1]': (x) => x.select(0, -1),
  'x[:,1]': (x) => x.select(1, 1),
  'x[:-1]': (x) => x.slice(0, 0, -1),
  'x[1:3]': (x) => x.slice(0, 1, 3),
  'x[::2]': (x) => x.slice(0, 0, null, 2),
  'x[:,None]': (x) => x.unsqueeze(1),
  'x.narrow(0,0,x.shape[0]-1)': (x) => x.narrow(0, 0, sub(at(x, 0), 1)),
  'x.select(1,2)': (x) => x.select(1, 2),
  'x.diagonal()': (x) => x.diagonal(),
  'torch.cat([x,x])': (x) => torch.cat([x, x]),
  'torch.cat([x,y],1)': (x, y) => torch.cat([x, y], 1),
  'torch.cat([x,y,x],1)': (x, y) => torch.cat([x, y, x], 1),
  'torch.stack([x,y])': (x, y) => torch.stack([x, y]),
  'x.chunk(2)': (x) => x.chunk(2),
  'x.split(2)': (x) => x.split(2),
  'x.split([2,4])': (x) => x.split([2, 4]),
  'x.unbind(0)': (x) => x.unbind(0),
  'torch.unfold_copy(x,0,2,1)': (x) => x.unfold(0, 2, 1).clone(),
  'x@y': (x, y) => x.matmul(y),
  'torch.bmm(x,y)': (x, y) => torch.bmm(x, y),
  'torch.mm(x,y)': (x, y) => torch.mm(x, y),
  'torch.addmm(x,y,z)': (x, y, z) => torch.addmm(x, y, z),
  'F.linear(x,y,z)': (x, y, z) => F.linear(x, y, z),
  "torch.einsum('ij,jk->ik',x,y)": (x, y) => torch.einsum('ij,jk->ik', x, y),
  "torch.einsum('bij,bjk->bik',x,y)": (x, y) => torch.einsum('bij,bjk->bik', x, y),
  'torch.outer(x,y)': (x, y) => torch.outer(x, y),
  'x.sum(0)': (x) => x.sum(0),
  'x.sum(1,keepdim=True)': (x) => x.sum(1, true),
  'x.mean((0,2))': (x) => x.mean([0, 2]),
  'x.amax(-1)': (x) => x.amax(-1),
  'x.cumsum(0)': (x) => x.cumsum(0),
  'x.softmax(-1)': (x) => x.softmax(-1),
  'x.var(0)': (x) => x.var(0),
  'x.sort(0)': (x) => x.sort(0),
  'F.conv1d(x,y)': (x, y) => F.conv1d(x, y),
  'F.conv1d(x,y,stride=2,padding=1)': (x, y) => F.conv1d(x, y, { stride: 2, padding: 1 }),
  'F.conv2d(x,y)': (x, y) => F.conv2d(x, y),
  'F.conv2d(x,y,stride=2,padding=1)': (x, y) => F.conv2d(x, y, { stride: 2, padding: 1 }),
  'F.conv_transpose2d(x,y,stride=2)': (x, y) => F.convTranspose2d(x, y, null, { stride: 2 }),
  'F.max_pool2d(x,2)': (x) => F.maxPool2d(x, 2),
  'F.max_pool2d(x,3,2,1)': (x) => F.maxPool2d(x, 3, { stride: 2, padding: 1 }),
  'F.avg_pool2d(x,2,ceil_mode=True)': (x) => F.avgPool2d(x, 2, { ceilMode: true }),
  'F.adaptive_avg_pool2d(x,(2,3))': (x) => F.adaptiveAvgPool2d(x, [2, 3]),
  'F.interpolate(x,scale_factor=2)': (x) => F.interpolate(x, { scaleFactor: 2 }),
  'F.interpolate(x,size=(8,9))': (x) => F.interpolate(x, { size: [8, 9] }),
  'F.pad(x,(1,2))': (x) => F.pad(x, [1, 2]),
  'F.layer_norm(x,(4,))': (x) => F.layerNorm(x, [4]),
  'F.layer_norm(x,x.shape[1:])': (x) => F.layerNorm(x, x.shape.slice(1)),
  'F.group_norm(x,2)': (x) => F.groupNorm(x, 2),
  'F.batch_norm(x,None,None,training=True)': (x) => F.batchNorm(x, null, null, { training: true }),
  'F.scaled_dot_product_attention(x,y,z)': (x, y, z) => F.scaledDotProductAttention(x, y, z),
  'F.cross_entropy(x,y.long().view(-1))': (x, y) => F.crossEntropy(x, y.long().view(-1)),
  'F.glu(x)': (x) => F.glu(x),
  'F.one_hot(x.long(),10)': (x) => F.oneHot(x.long(), 10),
  'F.unfold(x,3)': (x) => F.unfold(x, 3),
  'torch.where(x>0,x,y)': (x, y) => torch.where(x.gt(0), x, y),
  'x.masked_fill(y>0,0.)': (x, y) => x.maskedFill(y.gt(0), 0),
  'x.gather(0,y.long())': (x, y) => x.gather(0, y.long()),
  'x[y.long()]': (x, y) => x.index([y.long()]),
  'x.scatter(0,y.long(),1.)': (x, y) => x.scatter(0, y.long(), 1),
  'x.tril()': (x) => x.tril(),
  'x.flip(0)': (x) => x.flip(0),
  'torch.zeros(x.shape[0],x.shape[1]+1)': (x) => torch.zeros([at(x, 0), add(at(x, 1), 1)]),
  'torch.arange(x.shape[0])': (x) => torch.arange(at(x, 0)),
  'torch.arange(1,x.shape[0]*2,2)': (x) => torch.arange(1, times(at(x, 0), 2), 2),
  'torch.linspace(0,1,x.shape[0])': (x) => torch.linspace(0, 1, at(x, 0)),
  'torch.eye(x.shape[0])': (x) => torch.eye(at(x, 0)),
  'torch.tril(torch.ones(x.shape[0],x.shape[0]))': (x) => torch.tril(torch.ones([at(x, 0), at(x, 0)])),
  'torch.zeros_like(x.t())': (x) => torch.zerosLike(x.t()),
  'x.new_zeros(x.shape[1],x.shape[0])': (x) => x.newZeros([at(x, 1), at(x, 0)]),
  'x.contiguous()': (x) => x.contiguous(),
  'x.t().contiguous()': (x) => x.t().contiguous(),
  'x.t().clone()': (x) => x.t().clone(),
  'x.t()+y': (x, y) => x.t().add(y),
  'x.expand(5,-1,-1).contiguous()': (x) => x.expand(5, -1, -1).contiguous(),
  'x.nonzero()': (x) => x.nonzero(),
  'x[x>0]': (x) => x.maskedSelect(x.gt(0)),
  'torch.unique(x)': (x) => torch.unique(x),
  'torch.kron(x,y)': (x, y) => torch.kron(x, y),
  'torch.cdist(x,y)': (x, y) => torch.cdist(x, y),
  'torch.tensordot(x,y,1)': (x, y) => torch.tensordot(x, y, 1),
  "torch.meshgrid(x,y,indexing='ij')": (x, y) => torch.meshgrid([x, y], { indexing: 'ij' }),
  'x.tile((2,))': (x) => x.tile([2]),
  'x.movedim(0,-1)': (x) => x.movedim(0, -1),
  'torch.broadcast_tensors(x,y)': (x, y) => torch.broadcastTensors([x, y]),
  'x.unsafe_chunk(2,1)': (x) => x.chunk(2, 1),
  'torch.logsumexp(x,0)': (x) => torch.logsumexp(x, 0),
  'x.view(torch.int32)': (x) => x.viewAs(x.to('int32')),
  'torch.hstack([x,y])': (x, y) => torch.hstack([x, y]),
  'x.unflatten(0,(x.shape[0]//2,2))': (x) => x.unflatten(0, [half(at(x, 0)), 2]),
  'x.narrow(1,x.shape[0],1)': (x) => x.narrow(1, at(x, 0), 1),
  'x[:, :x.shape[0]]': (x) => x.slice(1, 0, at(x, 0)),
  'x[x.shape[0]//2:]': (x) => x.slice(0, half(at(x, 0))),
  'x.reshape(x.shape[0]*2,x.shape[1]//2)': (x) => x.reshape(times(at(x, 0), 2), half(at(x, 1))),
}

const goldens = readGolden('shapeRules')

/** Results whose elements lie in another order here (difference: row-major-results). */
const inRowMajorOrder = new Set(['torch.zeros_like(x.t())', 'x.t().clone()', 'x.t()+y', 'x.nonzero()'])

type Layout = readonly [sizes: readonly string[], strides: readonly string[], offset: string]
/** The layouts of a recorded result, of one tensor or of several. */
const layoutsOf = (result: Json | undefined): readonly Layout[] => {
  if (!isList(result)) throw new Error('no result')
  return (isList(result[0]) && isList(result[0][0]) ? result : [result]) as unknown as readonly Layout[]
}

/** The symbols of a run that depend on data. */
const unbackedIn = ({ env, results }: SymbolicRun): readonly SymbolExpr[] =>
  results
    .flatMap(({ sizes, strides, offset }) => [...sizes, ...strides, offset])
    .map(exprOf)
    .flatMap((expr) => (typeof expr === 'number' ? [] : [...freeSymbols(expr)]))
    .filter((one) => env.isUnbacked(one))

const textsOf = (value: Json | undefined): readonly string[] => (isList(value) ? value.map(String) : [])

describe('the layouts that PyTorch derives', () => {
  it('are of programs that are all here', () => {
    expect(goldens).toHaveLength(123)
    expect([...new Set(goldens.map(({ call }) => String(call)))].filter((call) => !(call in programs))).toEqual([])
  })

  it.each(goldens.map((golden) => [`${String(golden['call'])} ${JSON.stringify(golden['inputs'])}`, golden] as const))('%s', (_, golden) => {
    const run = programs[String(golden['call'])]
    const shapes = golden['inputs']
    if (run === undefined || !isList(shapes)) throw new Error('no program')
    const inputs = shapes.map((shape) => torch.ones(shape as readonly number[]))
    const env = new ShapeEnv({ duckShape: false })
    const program = (...tensors: readonly Tensor[]): unknown => Reflect.apply(run, undefined, tensors)
    if (golden['error'] !== undefined) {
      expect(() => runSymbolically(inputs, program, { env })).toThrow(ShapeError)
      return
    }
    // (difference: unique-reads-data)
    if (golden['call'] === 'torch.unique(x)') {
      expect(() => runSymbolically(inputs, program, { env })).toThrow(UnsupportedError)
      return
    }
    const found = runSymbolically(inputs, program, { env })
    const state = golden['state'] as { readonly guards: Json; readonly replacements: Readonly<Record<string, string>> }
    const symbols = new Map([...env.values.keys(), ...unbackedIn(found)].map((known) => [known.name, known]))
    const parsed = (text: string): ReturnType<typeof parseExpr> => parseExpr(text, (name: string) => symbols.get(name) ?? symbol(name))
    const guards = [...textsOf(state.guards), ...Object.entries(state.replacements).map(([name, by]) => `Eq(${name}, ${by})`)].map(parsed)
    const satisfies = (values: Assignment): boolean => guards.every((guard) => evaluateAt(guard, values) === 1)
    // What depends on data has any value.
    const withData = (values: Assignment): Assignment => new Map([...values, ...unbackedIn(found).map((unknown) => [unknown, 7] as const)])
    const drawn = [env.values, ...assignments(env, 60, randomNumbers(1))].map(withData).filter(satisfies).slice(0, 20)
    expect(drawn.length).toBeGreaterThan(0)
    const layouts = layoutsOf(golden['result'])
    expect(found.results).toHaveLength(layouts.length)
    for (const values of drawn) {
      const wanted = layouts.map(([sizes, strides, offset]) => ({
        shape: sizes.map((text) => evaluateAt(parsed(text), values)),
        ...(inRowMajorOrder.has(String(golden['call'])) ? {} : { strides: strides.map((text) => evaluateAt(parsed(text), values)) }),
        offset: evaluateAt(parsed(offset), values),
      }))
      expect(found.results.map((result) => numbersAt(result, values))).toMatchObject(wanted)
    }
  })
})
