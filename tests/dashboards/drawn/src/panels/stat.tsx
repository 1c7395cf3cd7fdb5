// Tiles of one value each, by Grafana's own big values.
import {
  getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
  PanelPlugin,
  type FieldDisplay,
  type PanelProps,
} from '@grafana/data';
import type { Options } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import { BigValue, VizRepeater, useTheme2, type VizRepeaterRenderValueProps } from '@grafana/ui';

function Stat({
  data,
  options,
  fieldConfig,
  width,
  height,
  replaceVariables,
  renderCounter,
  timeZone,
}: PanelProps<Options>) {
  const theme = useTheme2();
  const getValues = () =>
    getFieldDisplayValues({
      fieldConfig,
      reduceOptions: options.reduceOptions,
      replaceVariables,
      theme,
      data: data.series,
      sparkline: false,
      timeZone,
    });
  const renderValue = (tile: VizRepeaterRenderValueProps<FieldDisplay>) => (
    <BigValue
      theme={theme}
      value={tile.value.display}
      count={tile.count}
      width={tile.width}
      height={tile.height}
      alignmentFactors={tile.alignmentFactors as never}
      colorMode={options.colorMode as never}
      graphMode={options.graphMode as never}
      justifyMode={options.justifyMode as never}
      textMode={options.textMode as never}
      text={options.text}
      disableWideLayout={!options.wideLayout}
    />
  );
  return (
    <VizRepeater
      getValues={getValues}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={renderValue}
      width={width}
      height={height}
      source={data}
      itemSpacing={3}
      renderCounter={renderCounter}
      autoGrid
      orientation={options.orientation as never}
    />
  );
}

export const stat = new PanelPlugin<Options>(Stat).useFieldConfig();
