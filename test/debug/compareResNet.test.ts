// compareBackends on a ResNet-18: faults in its layers are found where they are.
import { it } from 'vitest'
import { tenth } from '../helpers/rotation.ts'
import { expectNamed, sample } from './placesOfModels.ts'

it('a planted fault is named, and no node that inherits it, in places of a ResNet-18', async () => {
  const { gm, inputs } = sample('resnet18')
  const places = [
    ['conv1', 'off-by-one pad'],
    ['bn1', 'wrong eps'],
    ['maxpool', 'off-by-one pad'],
    ['layer1_0_conv1', 'off-by-one pad'],
    ['layer1_1_bn2', 'wrong eps'],
    ['layer2_0_conv1', 'off-by-one pad'],
    ['layer2_0_bn1', 'wrong eps'],
    ['layer2_0_conv2', 'float16 rounding'],
    ['layer3_1_conv2', 'off-by-one pad'],
    ['layer4_1_bn2', 'wrong eps'],
    ['avgpool', 'float16 rounding'],
    ['fc', 'float16 rounding'],
  ] as const
  // Some of them each day: every place runs the whole network on two backends.
  await expectNamed(
    gm,
    inputs,
    tenth(places, ([name]) => name),
  )
})
