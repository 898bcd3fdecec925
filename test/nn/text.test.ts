// What layers print, and what they refuse, as PyTorch does. Values are compared in test/pytorch.
import { expect, test } from 'vitest'
import { fx, nn, torch } from 'tensorfx'

const { parametrizations } = nn.utils

test.each([
  [new nn.CELU(0.5), 'CELU(alpha=0.5)'],
  [new nn.GLU(), 'GLU(dim=-1)'],
  [new nn.Hardshrink(), 'Hardshrink(0.5)'],
  [new nn.Softshrink(0.3), 'Softshrink(0.3)'],
  [new nn.Hardtanh(), 'Hardtanh(min_val=-1.0, max_val=1.0)'],
  [new nn.ReLU6(), 'ReLU6()'],
  [new nn.Threshold(0.1, 20), 'Threshold(threshold=0.1, value=20)'],
  [new nn.Softplus(), 'Softplus(beta=1.0, threshold=20.0)'],
  [new nn.RReLU(), 'RReLU(lower=0.125, upper=0.3333333333333333)'],
  [new nn.PReLU({ numParameters: 3 }), 'PReLU(num_parameters=3)'],
  [new nn.Softmin(1), 'Softmin(dim=1)'],
  [new nn.ReflectionPad2d(1), 'ReflectionPad2d((1, 1, 1, 1))'],
  [new nn.ConstantPad1d([1, 2], 3.5), 'ConstantPad1d(padding=(1, 2), value=3.5)'],
  [new nn.Unflatten(1, [2, 3]), 'Unflatten(dim=1, unflattened_size=(2, 3))'],
  [new nn.ChannelShuffle(2), 'ChannelShuffle(groups=2)'],
  [new nn.PixelShuffle(2), 'PixelShuffle(upscale_factor=2)'],
  [new nn.PixelUnshuffle(3), 'PixelUnshuffle(downscale_factor=3)'],
  [new nn.RMSNorm(4), 'RMSNorm((4,), eps=None, elementwise_affine=True)'],
  [new nn.InstanceNorm2d(3), 'InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=True, track_running_stats=False)'],
  [new nn.MaxPool1d(2), 'MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)'],
  [new nn.AvgPool3d(2, 1), 'AvgPool3d(kernel_size=2, stride=1, padding=0)'],
  [new nn.LPPool2d(2, 3), 'LPPool2d(norm_type=2, kernel_size=3, stride=3, ceil_mode=False)'],
  [new nn.AdaptiveMaxPool2d([2, null]), 'AdaptiveMaxPool2d(output_size=(2, None))'],
  [new nn.Conv3d(2, 4, 3, { padding: [0, 1, 1] }), 'Conv3d(2, 4, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=(0, 1, 1))'],
  [
    new nn.ConvTranspose3d(2, 2, 2, { stride: 2, dilation: 2, outputPadding: 1, groups: 2, bias: false }),
    'ConvTranspose3d(2, 2, kernel_size=(2, 2, 2), stride=(2, 2, 2), dilation=(2, 2, 2), output_padding=(1, 1, 1), groups=2, bias=False)',
  ],
  [new nn.Fold([3, 3], 2), 'Fold(output_size=(3, 3), kernel_size=2, dilation=1, padding=0, stride=1)'],
  [new nn.Unfold([2, 1], { stride: 2 }), 'Unfold(kernel_size=(2, 1), dilation=1, padding=0, stride=2)'],
  [new nn.EmbeddingBag(6, 3), "EmbeddingBag(6, 3, mode='mean')"],
  [
    new nn.EmbeddingBag(6, 3, { mode: 'sum', paddingIdx: -1, scaleGradByFreq: true }),
    "EmbeddingBag(6, 3, scale_grad_by_freq=True, mode='sum', padding_idx=5)",
  ],
  [new nn.LocalResponseNorm(3, 0.1, { k: 2 }), 'LocalResponseNorm(3, alpha=0.1, beta=0.75, k=2.0)'],
  [new nn.CrossMapLRN2d(2), 'CrossMapLRN2d(2, alpha=0.0001, beta=0.75, k=1)'],
  [new nn.Dropout2d(0.2), 'Dropout2d(p=0.2, inplace=False)'],
  [new nn.AlphaDropout(), 'AlphaDropout(p=0.5, inplace=False)'],
  [new nn.CosineSimilarity(), 'CosineSimilarity()'],
  [new nn.PairwiseDistance(1), 'PairwiseDistance()'],
  [new nn.FractionalMaxPool2d(2, { outputRatio: 0.5 }), 'FractionalMaxPool2d()'],
  [new nn.TripletMarginWithDistanceLoss(), 'TripletMarginWithDistanceLoss(\n  (distanceFunction): PairwiseDistance()\n)'],
  [
    new nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2]),
    `AdaptiveLogSoftmaxWithLoss(
  (head): Linear(in_features=4, out_features=3, bias=False)
  (tail): ModuleList(
    (0): Sequential(
      (0): Linear(in_features=4, out_features=1, bias=False)
      (1): Linear(in_features=1, out_features=4, bias=False)
    )
  )
)`,
  ],
  [new nn.Bilinear(2, 3, 4), 'Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)'],
])('prints as in PyTorch: %s', (layer, text) => {
  expect(String(layer)).toBe(text)
  expect([...fx.symbolicTrace(new nn.Sequential(layer as nn.Module)).graph.nodes].map((node) => node.op)).toContain('call_module')
})

test.each([
  [() => new nn.ReflectionPad2d([1, 2]), 'nn.ReflectionPad2d: padding must be an integer or an array of 4, got [1, 2].'],
  [() => new nn.Hardtanh(1, -1), 'nn.Hardtanh: minVal must be below maxVal, got 1 and -1.'],
  [() => new nn.Softmax2d()(torch.ones([2])), 'nn.Softmax2d: the input must be [N, C, H, W] or [C, H, W], got shape [2].'],
  [() => new nn.RMSNorm(4)(torch.ones([3])), 'nn.RMSNorm: the input must end in shape (4,), got shape [3].'],
  [() => new nn.InstanceNorm1d(4)(torch.ones([2, 3, 5])), 'expected input [N, C, L] or [C, L] with 4 channels, got shape [2, 3, 5].'],
  [() => new nn.PReLU({ numParameters: 0 }), 'nn.PReLU: numParameters must be an integer of at least 1, got 0.'],
  [() => new nn.Conv3d(2, 3, [1, 2]), 'nn.Conv3d: kernelSize must be an integer of at least 1 or an array of 3, got [1, 2].'],
  [() => new nn.Conv2d(2, 3, 1, { padding: 'full' as 'same' }), "nn.Conv2d: padding must be sizes, 'same' or 'valid', got 'full'."],
  [() => new nn.ConvTranspose1d(1, 1, 2, { padding: 'same' as never }), 'nn.ConvTranspose1d: padding must be an integer of at least 0, got'],
  [
    () => new nn.ConvTranspose1d(1, 1, 2, { stride: 2 })(torch.ones([1, 1, 3]), [8]),
    'nn.ConvTranspose1d: outputSize must be between [6] and [7] for an input of shape [1, 1, 3], got [8].',
  ],
  [() => new nn.ConvTranspose2d(1, 1, 2, { paddingMode: 'reflect' as 'zeros' }), "nn.ConvTranspose2d: paddingMode must be 'zeros', got 'reflect'."],
  [() => new nn.Fold(2, 0), 'nn.Fold: kernelSize must be an integer of at least 1 or an array of 2, got 0.'],
  [() => new nn.EmbeddingBag(3, 2, { mode: 'min' as 'max' }), "nn.EmbeddingBag: mode must be 'sum', 'mean' or 'max', got 'min'."],
  [() => new nn.EmbeddingBag(3, 2, { paddingIdx: 3 }), 'nn.EmbeddingBag: paddingIdx must be between -3 and 2, got 3.'],
  [() => new nn.LocalResponseNorm(0), 'nn.LocalResponseNorm: size must be an integer of at least 1, got 0.'],
  [() => new nn.CrossMapLRN2d(2)(torch.ones([2, 3])), 'nn.CrossMapLRN2d: the input must be [N, C, H, W], got shape [2, 3].'],
  [() => new nn.Dropout3d(2), 'nn.Dropout3d: p must be a probability between 0 and 1, got 2.'],
  [() => new nn.FractionalMaxPool3d(2), 'nn.FractionalMaxPool3d: give outputSize or outputRatio, one of them.'],
  [() => new nn.AdaptiveLogSoftmaxWithLoss(4, 6, [4, 2]), 'cutoffs must be increasing integers between 1 and nClasses - 1 = 5'],
  [() => new nn.AdaptiveLogSoftmaxWithLoss(4, 6, [6]), 'at least one of them, got [6].'],
  [
    () => new nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(torch.ones([2, 4]), torch.tensor([1, 6]).long()),
    'nn.AdaptiveLogSoftmaxWithLoss: targets must be between 0 and 5, but 1 of 2 are not.',
  ],
  [() => new nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(torch.ones([4]), torch.tensor([1]).long()), 'got shapes [4] and [1].'],
  [() => new nn.HingeEmbeddingLoss({ margins: 1 } as never), "nn.HingeEmbeddingLoss: unknown option 'margins'"],
  [() => new nn.MaxPool1d(0), 'nn.MaxPool1d: kernelSize must be an integer of at least 1'],
  [() => new nn.ParameterList([3 as never]), 'nn.ParameterList.append: expected a Parameter or a Tensor, got 3.'],
  [() => new nn.ParameterList().at(0), 'nn.ParameterList.at: index 0 is out of range for 0 parameter(s).'],
  [() => new nn.ParameterDict({ a: torch.ones([1]) }).get('b'), "nn.ParameterDict.get: there is no parameter 'b'. The parameters are a."],
  [() => new nn.ParameterDict().set('get', torch.ones([1])), "the name 'get' is taken"],
  [() => nn.init.dirac_(torch.ones([2, 2])), 'init.dirac_: expected the weight of a convolution'],
  [() => nn.init.orthogonal_(torch.ones([2])), 'init.orthogonal_: expected at least 2 dimensions, got shape [2].'],
  [() => nn.utils.vectorToParameters(torch.ones([3]), [torch.ones([2])]), 'the parameters have 2 elements, but the vector has shape [3].'],
  [() => parametrizations.weightNorm(new nn.ReLU()), "registerParametrization: ReLU has no parameter 'weight'; its parameters are none."],
  [
    () => new nn.Linear(2, 2).to('cuda' as never),
    "Module.to: expected a floating-point dtype such as 'float16' or a device ('cpu', 'webgpu'), got 'cuda'.",
  ],
])('a wrong argument is an error that says what is right: case %#', (run, message) => expect(run).toThrow(message))
