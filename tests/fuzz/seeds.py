"""Inputs to begin with that no file of the project holds: a template of all functions, parameters, settings."""

from __future__ import annotations

FUNCTIONS = """\
AWSTemplateFormatVersion: "2010-09-09"
Description: every function that is known
Parameters:
  Stage: {Type: String, Default: test, AllowedValues: [test, prod], Description: where}
  Count: {Type: Number, Default: 3, MinValue: 1, MaxValue: 9}
  Names: {Type: CommaDelimitedList, Default: "a, b, c"}
  Pattern: {Type: String, Default: ab12, AllowedPattern: "[a-z]+[0-9]*", MinLength: 1, MaxLength: 20}
  Hidden: {Type: String, NoEcho: true, Default: x}
  Image: {Type: "AWS::SSM::Parameter::Value<String>", Default: /image}
Mappings:
  Sizes:
    test: {memory: 128, list: [a, b]}
    prod: {memory: 512, list: [c]}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsTest: !Not [!Condition IsProd]
  Either: !Or [!Condition IsProd, !Condition IsTest]
  Both: !And [!Condition IsTest, !Equals [!Ref "AWS::Region", eu-west-1]]
x-common: &common
  Tags: &tags
    - {Key: stage, Value: !Ref Stage}
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    DeletionPolicy: Retain
    UpdateReplacePolicy: Delete
    Metadata: {a: 1}
  Queue:
    Type: AWS::SQS::Queue
    DependsOn: [Bucket]
    Condition: Either
    Properties:
      <<: *common
      QueueName: !Sub
        - "${AWS::StackName}-${Name}-${!Literal}"
        - Name: !Select [1, !Ref Names]
      VisibilityTimeout: !FindInMap [Sizes, !Ref Stage, memory]
      DelaySeconds: !If [IsProd, 5, !Ref AWS::NoValue]
      RedrivePolicy:
        deadLetterTargetArn: !GetAtt Failed.Arn
        maxReceiveCount: !Ref Count
  Failed:
    Type: AWS::SQS::Queue
    Properties:
      Tags: *tags
      KmsMasterKeyId: !Join ["-", [!Ref Stage, !Ref Hidden, !Ref "AWS::Region"]]
  Texts:
    Type: AWS::SSM::Parameter
    Properties:
      Type: StringList
      Value: !Join [",", !Split ["|", !Sub "${Bucket.Arn}|${Image}|${Pattern}"]]
      Description: !Base64 {"Fn::Sub": "${Queue}"}
      Tags: {"Fn::ToJsonString": {a: 1, b: [!Ref Stage]}}
  Net:
    Type: AWS::EC2::VPC
    Properties:
      CidrBlock: !Select [0, !Cidr ["10.0.0.0/16", 4, 8]]
      Zone: !Select [0, !GetAZs ""]
      Number: 1.50
      Octal: 010
      Time: 12:30
      Yes: yes
      Text: |
        several
        lines
      Folded: >-
        folded
        text
Outputs:
  Url:
    Value: !Ref Queue
    Condition: Either
    Export: {Name: !Sub "${AWS::StackName}-url"}
"""

PARAMETERS = (
    b'{"Stage": "prod", "Count": 5, "Names": ["a", "b"], "On": true, "Zip": 00123}\n',
    b'{"Parameters": {"Stage": "prod", "Count": 5.50}}\n',
    b'[{"ParameterKey": "Stage", "ParameterValue": "prod"}, {"ParameterKey": "Count", "ParameterValue": 7}]\n',
    b"Stage: prod\nCount: 5\nNames: [a, b]\nOn: yes\nText: |\n  several\n  lines\n",
    b"- ParameterKey: Stage\n  ParameterValue: prod\n- {ParameterKey: Zip, ParameterValue: 00123}\n",
    b"Base: &base {Stage: prod}\nOther: *base\n<<: *base\n",
)

SETTINGS = (
    b'state = "file:records"\nregion = "eu-west-1"\ndeadline = "1h30m"\nlock_timeout = 60\ngrace = "8s"\n',
    b'state = "s3://acme-state"\nstate_prefix = "team/a"\nprofile = "team"\nallow_network_dir = true\n'
    b'lock_ttl = "30m"\nlock-renew = "2m"\nstop_poll = 0.5\n\n[tags]\nteam = "shop"\n"cost centre" = "12"\n',
    b"# nothing is set\n[tags]\n",
)
