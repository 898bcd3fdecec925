"""Small versions of torchvision's networks, made with torchvision's own classes: each is one family of docs/guide/porting-from-pytorch.md."""
from functools import partial
from torch import nn
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.densenet import DenseNet
from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig
from torchvision.models.mobilenetv2 import MobileNetV2
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.regnet import BlockParams, RegNet
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet
from torchvision.models.shufflenetv2 import ShuffleNetV2
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vgg import VGG, make_layers
from torchvision.models.vision_transformer import VisionTransformer


class SmallResNet(ResNet):
    """torchvision's stages, with other widths; a stage of basic blocks comes before one of bottlenecks."""

    def __init__(self, classes=5):
        nn.Module.__init__(self)
        self._norm_layer = nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 8, 1, 1, 64
        self.conv1 = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(BasicBlock, 8, 2)
        self.layer2 = self._make_layer(BasicBlock, 12, 1, stride=2)
        self.layer3 = self._make_layer(Bottleneck, 4, 2, stride=2)
        self.layer4 = self._make_layer(Bottleneck, 6, 1, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(24, classes)


def vgg():
    model = VGG(make_layers([8, 'M', 12, 12, 'M'], batch_norm=True), num_classes=5, init_weights=False)
    model.avgpool = nn.AdaptiveAvgPool2d((2, 2))
    model.classifier = nn.Sequential(nn.Linear(48, 16), nn.ReLU(True), nn.Dropout(), nn.Linear(16, 16), nn.ReLU(True), nn.Dropout(), nn.Linear(16, 5))
    return model


def mobilenet_v2():
    model = MobileNetV2(num_classes=5, width_mult=0.25, inverted_residual_setting=[[1, 16, 1, 1], [6, 32, 2, 2], [6, 64, 1, 2]])
    last = model.features[-1]
    last[0] = nn.Conv2d(last[0].in_channels, 32, 1, bias=False)
    last[1] = nn.BatchNorm2d(32)
    model.classifier[1] = nn.Linear(32, 5)
    return model


def mobilenet_v3():
    block = partial(InvertedResidualConfig, dilation=1, width_mult=1.0)
    return MobileNetV3([block(8, 3, 8, 8, True, 'RE', 2), block(8, 3, 24, 16, False, 'RE', 2), block(16, 5, 32, 16, True, 'HS', 1)], 24, num_classes=5)


def efficientnet():
    return EfficientNet([FusedMBConvConfig(1, 3, 1, 8, 8, 1), FusedMBConvConfig(2, 3, 2, 8, 16, 1), MBConvConfig(4, 5, 2, 16, 16, 2, width_mult=1.0, depth_mult=1.0)], 0.2, num_classes=5)


def regnet():
    return RegNet(BlockParams(depths=[1, 2], widths=[8, 16], group_widths=[4, 8], bottleneck_multipliers=[1.0, 1.0], strides=[2, 2], se_ratio=0.25), num_classes=5, stem_width=8)


vision = {
    'resnet': SmallResNet,
    'vgg': vgg,
    'densenet': lambda: DenseNet(growth_rate=4, block_config=(2, 3), num_init_features=8, bn_size=2, num_classes=5),
    'mobilenet_v2': mobilenet_v2,
    'mobilenet_v3': mobilenet_v3,
    'efficientnet': efficientnet,
    'convnext': lambda: ConvNeXt([CNBlockConfig(8, 12, 1), CNBlockConfig(12, 16, 2), CNBlockConfig(16, None, 1)], num_classes=5),
    'shufflenet_v2': lambda: ShuffleNetV2([2, 2, 1], [8, 12, 16, 24, 32], num_classes=5),
    'regnet': regnet,
    'vit': lambda: VisionTransformer(image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5),
    'swin': lambda: SwinTransformer(patch_size=[2, 2], embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=[2, 2], num_classes=5),
}
