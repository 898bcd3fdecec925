// One operator in eager mode, on a tensor that wants a gradient.
import { torch } from 'tensorfx'

torch.relu(torch.randn([4], { requiresGrad: true }))
