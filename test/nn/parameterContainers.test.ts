// Lists and dictionaries of parameters, and other dtypes.
import { expect, test } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import { functionalCall, grad } from 'tensorfx/func'
import type { Tensor } from 'tensorfx'

const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)

test('parameter containers register, count, copy and find their parameters', () => {
  class Net extends nn.Module {
    list = new nn.ParameterList([torch.ones([2]), new nn.Parameter(torch.zeros([3]))])
    dict = new nn.ParameterDict({ scale: torch.ones([2]) })
    override forward(x: Tensor): Tensor {
      return x.mul(this.list.at(0)).mul(this.dict.get('scale'))
    }
  }
  const net = new Net()
  expect([...net.namedParameters()].map(([name]) => name)).toEqual(['list.0', 'list.1', 'dict.scale'])
  expect([net.list.length, net.dict.size, net.list.at(-1).shape, net.dict.has('scale')]).toEqual([2, 1, [3], true])
  expect(net.deepCopy().list.at(0)).not.toBe(net.list.at(0))
  expect(values(net(torch.tensor([1, 2])))).toEqual([1, 2])
})

test('parameter containers hold what takes the place of a parameter, and a trace records what is read', () => {
  class Net extends nn.Module {
    list = new nn.ParameterList([torch.ones([2]), torch.ones([2]).mul(5)])
    dict = new nn.ParameterDict({ scale: torch.ones([2]), other: torch.zeros([2]) })
    override forward(x: Tensor): Tensor {
      return x
        .mul(this.list.at(-2))
        .mul(this.dict.get('scale'))
        .mul([...this.list].length)
    }
  }
  const [net, x] = [new Net(), torch.tensor([1, 2])]
  const call = (w: Tensor): Tensor => functionalCall(net, { 'list.0': w.mul(3), 'dict.scale': w }, [x]) as Tensor
  expect(values(call(torch.ones([2])))).toEqual([6, 12])
  expect(values(grad((w: Tensor) => call(w).sum())(torch.ones([2])))).toEqual([12, 24])
  const traced = fx.symbolicTrace(new Net())
  expect(traced.code).toContain('this.dict.scale')
  expect(traced.code).not.toContain('other')
  expect(values(traced(x))).toEqual([2, 4])
})

test('to converts floating-point parameters and buffers; shared ones stay shared', () => {
  const shared = new nn.Linear(2, 2)
  const net = new nn.Sequential(shared, new nn.BatchNorm1d(2), shared).double()
  expect([...net.stateDict()].map(([name, t]) => [name, (t as Tensor).dtype])).toContainEqual(['1.numBatchesTracked', 'int64'])
  expect([shared.weight.dtype, shared.weight.requiresGrad, shared.weight.isParameter]).toEqual(['float64', true, true])
  expect(net(torch.ones([3, 2], { dtype: 'float64' })).dtype).toBe('float64')
  expect((net.half().at(0) as nn.Linear).weight.dtype).toBe('float16')
})
