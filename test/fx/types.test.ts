// What TypeScript knows of traced modules.
import { expect, expectTypeOf, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Transformer, symbolicTrace } from 'tensorfx/fx'

class Scale extends nn.Module {
  override forward(x: Tensor, by = 2): Tensor {
    return x.mul(by)
  }
}

test('a traced module is called as the module was', () => {
  const gm = symbolicTrace(new Scale())
  expectTypeOf(gm.call).toBeCallableWith(torch.ones([1]), 3)
  expectTypeOf(gm.call).returns.toEqualTypeOf<Tensor>()
  expect(gm.call(torch.ones([1]), 3).toArray()).toEqual([3])
})

test('a traced function is called as the function was, and what replaces it may be any GraphModule', () => {
  let gm = symbolicTrace((x: Tensor) => [x.relu(), x.neg()] as const)
  expectTypeOf(gm.call).returns.toEqualTypeOf<readonly [Tensor, Tensor]>()
  gm = new Transformer(gm).transform()
  expect(gm.call(torch.tensor([2]))[1].toArray()).toEqual([-2])
})

test('of a GraphModule made by hand the type says nothing, and stands in nobody’s way', () => {
  const gm = new GraphModule({}, symbolicTrace((x: Tensor) => x.neg()).graph)
  expectTypeOf(gm.call).returns.toBeAny()
  const out: Tensor = gm.call(torch.ones([1]))
  expect(out.toArray()).toEqual([-1])
})
